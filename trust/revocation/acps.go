// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// acpsPath is the path of the status of a certificate at an authority of ACPs v2.1, before its serial number.
const acpsPath = "/acps-atr-v2/ocsp/certificate/"

// acpsSerial returns a serial number as ACPs writes it: hexadecimal digits in upper case.
func acpsSerial(n *big.Int) string { return strings.ToUpper(n.Text(16)) }

// readACPS reads the status of a certificate as ACPs gives it. It is not signed, so the connection must prove its
// source.
func readACPS(raw []byte, number *big.Int, now time.Time) (*answer, error) {
	var status struct {
		Serial string    `json:"serialNumber"`
		Status string    `json:"certificateStatus"`
		From   time.Time `json:"thisUpdate"`
		Until  time.Time `json:"nextUpdate"`
	}
	if err := json.Unmarshal(raw, &status); err != nil {
		return nil, fmt.Errorf("the status cannot be read: %w", err)
	}
	if strings.TrimLeft(strings.ToUpper(status.Serial), "0") != acpsSerial(number) {
		return nil, errors.New("the answer is about another certificate")
	}
	a := &answer{from: status.From, until: status.Until, got: now}
	switch status.Status {
	case "good":
		a.outcome = good
	case "revoked":
		a.outcome = revoked
	case "unknown":
	default:
		return nil, fmt.Errorf("the status is %.20q", status.Status)
	}
	return a, a.checkTimes(now)
}
