// SPDX-License-Identifier: Apache-2.0

package agentca

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/pemtext"
)

// Usage is what a certificate is for, as an order names it.
type Usage string

// The usages. A certificate of ACPs v02 has one of them, and one of v01.00 both.
const (
	ServerAuth Usage = "serverAuth"
	ClientAuth Usage = "clientAuth"
	BothAuth   Usage = ""
)

// keyUsages are the extended key usages that a certificate of a usage must have.
func (u Usage) keyUsages() []x509.ExtKeyUsage {
	switch u {
	case ServerAuth:
		return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	case ClientAuth:
		return []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
}

// EAB is what a registry gives for the account of one agent (external account binding, RFC 8555 §7.3.4). It is a
// secret, and counts once: also an attempt with a wrong key spends it.
type EAB struct {
	KeyID   string
	AIC     string    // of the agent; empty if it does not say
	Expires time.Time // zero if it does not say

	mac []byte
}

// minMAC is the least size of the key of an EAB, in bytes: one that was cut off must not be spent.
const minMAC = 16

// ReadEAB reads an EAB as a registry gives it. Its errors do not quote it.
func ReadEAB(body []byte) (e EAB, err error) {
	var doc struct {
		KeyID   string    `json:"keyId"`
		MACKey  string    `json:"macKey"`
		AIC     string    `json:"aic"`
		Expires time.Time `json:"expiresAt"`
	}
	if json.Unmarshal(body, &doc) != nil {
		return e, errors.New("the EAB is not the JSON that a registry answers, with keyId and macKey")
	}
	e = EAB{KeyID: doc.KeyID, AIC: strings.ToUpper(strings.TrimSpace(doc.AIC)), Expires: doc.Expires}
	e.mac, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(doc.MACKey), "="))
	switch {
	case e.KeyID == "":
		return e, errors.New("the EAB has no keyId")
	case err != nil:
		return e, errors.New("the macKey of the EAB is not base64url")
	case len(e.mac) < minMAC:
		return e, fmt.Errorf("the macKey of the EAB has %d bytes, and must have at least %d", len(e.mac), minMAC)
	}
	return e, nil
}

// check refuses an EAB that the authority would refuse, so that it is not spent.
func (e EAB) check(aic string, now time.Time) error {
	switch {
	case e.AIC != "" && e.AIC != aic:
		return fmt.Errorf("the EAB is for the agent %s", cut(e.AIC, 60))
	case !e.Expires.IsZero() && !now.Before(e.Expires):
		return fmt.Errorf("the EAB has expired on %s", e.Expires.UTC().Format(time.RFC3339))
	}
	return nil
}

// identifier is whose certificate is ordered.
type identifier struct {
	Type  string `json:"type"`
	Value string `json:"value"`
	Usage Usage  `json:"usage,omitempty"`
}

// order is an order of one certificate.
type order struct {
	Status         string       `json:"status"`
	Identifiers    []identifier `json:"identifiers"`
	Authorizations []string     `json:"authorizations"`
	Finalize       string       `json:"finalize"`
	Certificate    string       `json:"certificate"`
}

// The states of an order (RFC 8555 §7.1.6). In any other state it leads to no certificate.
const (
	orderPending    = "pending"
	orderReady      = "ready"
	orderProcessing = "processing"
	orderValid      = "valid"
)

// readOrder reads an order, which must be of one identifier.
func readOrder(body []byte, id identifier) (*order, error) {
	o := new(order)
	if json.Unmarshal(body, o) != nil || o.Status == "" {
		return nil, errors.New("the authority has answered no order")
	}
	same := func(other identifier) bool {
		return strings.EqualFold(other.Value, id.Value) && other.Usage == id.Usage
	}
	switch {
	case len(o.Identifiers) != 1 || !same(o.Identifiers[0]):
		return nil, errors.New("the order is of other identifiers than were ordered")
	case o.Finalize == "":
		return nil, errors.New("the order has no URL of finalize")
	case o.Status == orderValid && o.Certificate == "":
		return nil, errors.New("the order is valid, but has no certificate")
	}
	return o, nil
}

// authorization is what an order of v01.00 waits for: that a challenge is met.
type authorization struct {
	Status     string      `json:"status"`
	Challenges []challenge `json:"challenges"`
}

// challenge asks for a file with a token (RFC 8555 §8.3).
type challenge struct {
	Type  string `json:"type"`
	URL   string `json:"url"`
	Token string `json:"token"`
}

const maxToken = 200 // bytes

// readAuthorization reads an authorization, and returns the challenge that can be met by a file; nil if it is valid.
func readAuthorization(body []byte) (*challenge, error) {
	var a authorization
	if json.Unmarshal(body, &a) != nil || a.Status == "" {
		return nil, errors.New("the authority has answered no authorization")
	}
	switch a.Status {
	case "valid":
		return nil, nil
	case "pending":
		for _, c := range a.Challenges {
			if c.Type == "http-01" && IsToken(c.Token) {
				return &c, nil
			}
		}
		return nil, errors.New("the authority asks for no challenge that a file can meet")
	}
	return nil, fmt.Errorf("the authorization is %s: %w", cut(a.Status, 20), errOrderLost)
}

// IsToken reports whether a text can be the token of a challenge: it is part of a path.
func IsToken(s string) bool {
	return s != "" && len(s) <= maxToken && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '_'
	})
}

// readDirectory reads the directory of an authority.
func readDirectory(body []byte) (*directory, error) {
	d := new(directory)
	if json.Unmarshal(body, d) != nil || d.NewNonce == "" || d.NewAccount == "" || d.NewOrder == "" || d.RevokeCert == "" {
		return nil, errors.New("there is no directory of ACME at the URL")
	}
	return d, nil
}

const (
	maxChain  = 10  // certificates
	maxBundle = 100 // certificates
)

// readChain reads the certificates of an answer.
func readChain(text []byte) ([]*x509.Certificate, error) { return readCertificates(text, maxChain) }

// readCertificates reads certificates in PEM.
func readCertificates(text []byte, most int) (all []*x509.Certificate, err error) {
	if all, err = pemtext.Certificates(text, most); err != nil {
		return nil, fmt.Errorf("the authority has not answered 1 to %d certificates in PEM: %w", most, err)
	}
	return all, nil
}

// checkChain refuses a chain that is not what was ordered.
func checkChain(chain []*x509.Certificate, key *ecdsa.PrivateKey, name string, usage Usage, now time.Time) error {
	leaf := chain[0]
	switch {
	case !key.PublicKey.Equal(leaf.PublicKey):
		return errors.New("the certificate has another key")
	case !strings.EqualFold(leaf.Subject.CommonName, name):
		return fmt.Errorf("the certificate is of %q", cut(leaf.Subject.CommonName, 80))
	case !now.Before(leaf.NotAfter):
		return fmt.Errorf("the certificate has ended on %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	for _, u := range usage.keyUsages() {
		if !slices.Contains(leaf.ExtKeyUsage, u) {
			return fmt.Errorf("the certificate is not for %s", nameOf(usage))
		}
	}
	for i := range len(chain) - 1 {
		if err := chain[i].CheckSignatureFrom(chain[i+1]); err != nil {
			return fmt.Errorf("the chain of the certificate is broken: %w", err)
		}
	}
	return nil
}

// nameOf returns the name of a usage for people.
func nameOf(u Usage) string {
	if u == BothAuth {
		return "serverAuth and clientAuth"
	}
	return string(u)
}
