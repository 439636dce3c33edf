// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"testing"

	"github.com/aip-gateway/aip-gateway/acps/agentca"
)

// TestSerialNumber holds that the serial number of a certificate is spelled as in the log and in a policy.
func TestSerialNumber(t *testing.T) {
	leaf := &x509.Certificate{SerialNumber: big.NewInt(0x0a1b2c)}
	shown := shownCertificates(agentca.Status{Certificates: []agentca.Held{{Pair: &tls.Certificate{Leaf: leaf}}}})
	if len(shown) != 1 || shown[0].Serial != "a1b2c" {
		t.Errorf("shown as %+v, want a1b2c", shown)
	}
}
