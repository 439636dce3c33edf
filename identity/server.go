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

// Verify is what the certificate of a server must show, beside that a trusted root leads to it.
type Verify string

// What a server's certificate may have to show.
const (
	VerifyName Verify = "name" // the host name, as TLS is used elsewhere
	VerifyAIC  Verify = "aic"  // the AIC of the server that is meant; its host name is not looked at
	VerifyBoth Verify = "both"
)

// Server is the server that a client means. The registration authority of ACPs puts any host name into a certificate
// that its applicant asks for, so under its root only the AIC says whose a server is.
type Server struct {
	Verify Verify // default: VerifyAIC with an AIC, else VerifyName
	AICs   []AIC  // any of them is meant

	// Judge refuses certificates that are trusted and are those of the server that is meant, such as revoked ones; nil
	// for none. staple is the OCSP response that the server has sent; nil for none. The server may have no key of its
	// certificate: TLS 1.3 proves that later.
	Judge func(chains [][]*x509.Certificate, staple []byte) error
}

// ParseServer reads what an operator has written: the zero Server from nothing.
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

// Require makes a client's connections with a configuration fail if the server is not the one that is meant. Every
// failure of a certificate is a *tls.CertificateVerificationError; that of an AIC wraps an *OtherServerError. It is
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
	config.InsecureSkipVerify = !named // what TLS would verify beside the name is verified here
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

// shows returns an *OtherServerError if a certificate is not that of a server that is meant.
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

// OtherServerError says that the certificate of a server is trusted, but not that of the server that is meant.
type OtherServerError struct {
	Meant  []AIC
	AIC    AIC    // in the certificate; empty if there is none
	Detail string // why there is none, a sentence
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
