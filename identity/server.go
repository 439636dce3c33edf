// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// Verify is the requirement of a server's certificate, beside its chain to a trusted root.
type Verify string

// The requirements of a server's certificate.
const (
	VerifyName Verify = "name" // the host name, as TLS is used elsewhere
	VerifyAIC  Verify = "aic"  // the AIC of the intended server; its host name is not looked at
	VerifyBoth Verify = "both"
)

// Server is the intended server of a client. The registration authority of ACPs puts any host name into a certificate
// on its applicant's request, so under its root only the AIC names the owner of a server.
type Server struct {
	Verify Verify // default: VerifyAIC with an AIC, else VerifyName
	AICs   []AIC  // any of them is meant

	// Judge refuses certificates although they are trusted and the intended server's, such as revoked ones; nil for none.
	// staple is the server's OCSP response; nil for none. The server may have no key of its certificate: TLS 1.3 proves it
	// later.
	Judge func(chains [][]*x509.Certificate, staple []byte) error
}

// ParseServer reads an operator's text: the zero Server from nothing.
func ParseServer(verify string, aics ...string) (s Server, err error) {
	for _, text := range aics {
		aic, err := ParseAIC(text)
		if err != nil {
			return Server{}, fmt.Errorf("%q is not the AIC of a server: %w", text, err)
		}
		s.AICs = append(s.AICs, aic)
	}
	switch s.Verify = Verify(verify); {
	case verify == "" && len(aics) > 0:
		s.Verify = VerifyAIC
	case verify == "" || s.Verify == VerifyName && len(aics) == 0:
		s.Verify = VerifyName
	case s.Verify == VerifyName:
		return Server{}, errors.New("verify name looks at no AIC: leave the AIC out, or use verify both")
	case s.Verify != VerifyAIC && s.Verify != VerifyBoth:
		return Server{}, fmt.Errorf("verify is %q; use aic, name or both", verify)
	case len(aics) == 0:
		return Server{}, fmt.Errorf("verify %s needs the AIC of the server", verify)
	}
	return s, nil
}

// Require makes a client's connections with a configuration fail if the server is not the intended one. Every failure
// of a certificate is a *tls.CertificateVerificationError; if the AIC is wrong, it wraps an *OtherServerError. It is
// checked for resumed connections, too.
func (s Server) Require(config *tls.Config) {
	shown := s.Verify == VerifyAIC || s.Verify == VerifyBoth
	if !shown && s.Judge == nil {
		return
	}
	roots, now, named := config.RootCAs, config.Time, s.Verify != VerifyAIC
	if now == nil {
		now = time.Now
	}
	config.InsecureSkipVerify = !named // TLS's checks beside the name are made here
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return errors.New("the server has shown no certificate")
		}
		failed := func(err error) error {
			return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
		}
		chains := state.VerifiedChains
		if !named {
			options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool(), CurrentTime: now()}
			for _, cert := range state.PeerCertificates[1:] {
				options.Intermediates.AddCert(cert)
			}
			var err error
			if chains, err = state.PeerCertificates[0].Verify(options); err != nil { // for ServerAuth, by default
				return failed(err)
			}
		}
		if shown {
			if err := s.shows(state.PeerCertificates[0]); err != nil {
				return failed(err)
			}
		}
		if s.Judge == nil {
			return nil
		}
		if err := s.Judge(chains, state.OCSPResponse); err != nil {
			return failed(err)
		}
		return nil
	}
}

// shows returns an *OtherServerError if a certificate is not an intended server's.
func (s Server) shows(cert *x509.Certificate) error {
	aic, err := FromCertificate(cert)
	if err == nil && slices.Contains(s.AICs, aic) {
		return nil
	}
	other := &OtherServerError{Meant: s.AICs, AIC: aic}
	if e, ok := errors.AsType[*task.Error](err); ok {
		other.Detail = strings.Replace(e.Detail, "client certificate", "server certificate", 1)
	}
	return other
}

// OtherServerError is the error for a trusted certificate of another server than the intended one.
type OtherServerError struct {
	Meant  []AIC
	AIC    AIC    // in the certificate; empty if there is none
	Detail string // the reason for no AIC, a sentence
}

// Error implements error.
func (e *OtherServerError) Error() string {
	meant := string(e.Meant[0])
	for _, aic := range e.Meant[1:] {
		meant += " or " + string(aic)
	}
	if e.AIC == "" {
		return fmt.Sprintf("the server does not show that it is %s: %s", meant, e.Detail)
	}
	return fmt.Sprintf("the server is %s, not %s", e.AIC, meant)
}
