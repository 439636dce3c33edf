// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// Identity is a caller: its certificate, or none.
type Identity struct {
	Name        string
	AIC         string
	Certificate *tls.Certificate // nil for a caller without one
}

// LoadIdentity reads a certificate and its key. The AIC is that of the certificate, unless it is given.
func LoadIdentity(name, certFile, keyFile, aic string) (*Identity, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("identity %s: %w", name, err)
	}
	if aic == "" {
		aic = aicOf(pair.Leaf)
	}
	return &Identity{Name: name, AIC: aic, Certificate: &pair}, nil
}

var aicForm = regexp.MustCompile(`^([0-9A-Z]{32}|[0-9]+(\.[0-9A-Z]+){5,})$`)

// aicOf returns the AIC of a certificate: its common name, or the last part of a URI in it; empty if it has none.
func aicOf(leaf *x509.Certificate) string {
	names := []string{leaf.Subject.CommonName}
	for _, uri := range leaf.URIs {
		text := uri.String()
		names = append(names, text[strings.LastIndexAny(text, "/:")+1:])
	}
	names = append(names, leaf.DNSNames...)
	for _, name := range names {
		if upper := strings.ToUpper(name); aicForm.MatchString(upper) {
			return upper
		}
	}
	return ""
}

// LoadCA reads the certificates that may sign a Partner's.
func LoadCA(file string) (*x509.CertPool, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s has no certificate in PEM", file)
	}
	return pool, nil
}

// Options are those of a Client.
type Options struct {
	CA *x509.CertPool // nil for the system's
	// HTTP is "1" or "2" for this version alone; otherwise the two agree on one.
	HTTP string
	// ServerName is the name in the Partner's certificate, if it is not the host of its URL.
	ServerName string
}

// Client sends the requests of one identity. The caller must close it.
type Client struct {
	Identity *Identity
	http     *http.Client
	next     *http.Transport
}

// NewClient returns the Client of an identity.
func NewClient(id *Identity, o Options) *Client {
	config := &tls.Config{RootCAs: o.CA, ServerName: o.ServerName, MinVersion: tls.VersionTLS12}
	if id.Certificate != nil {
		// A certificate goes to every server that asks for one, whichever authorities it names: that it is refused is
		// what some tests want to see.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return id.Certificate, nil
		}
	}
	var protocols http.Protocols
	protocols.SetHTTP1(o.HTTP != "2")
	protocols.SetHTTP2(o.HTTP != "1")
	protocols.SetUnencryptedHTTP2(o.HTTP == "2")
	transport := &http.Transport{
		TLSClientConfig:        config,
		Protocols:              &protocols,
		DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:    dialTimeout,
		MaxResponseHeaderBytes: maxHeaders,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        30 * time.Second,
		DisableCompression:     true,
	}
	redirects := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{Identity: id, next: transport, http: &http.Client{Transport: transport, CheckRedirect: redirects}}
}

// Close closes the connections that no request uses.
func (c *Client) Close() { c.next.CloseIdleConnections() }

// Refused reports whether the error says that the other side refused the TLS handshake, or closed the connection in
// place of an answer: in TLS 1.3 a server looks at a certificate when the caller has begun to write.
func Refused(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" {
		return true
	}
	// HTTP/2 does not say what became of a connection that failed in the first exchange.
	if err != nil && strings.Contains(err.Error(), "client conn could not be established") {
		return true
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE)
}

// Unreachable reports whether no server answers at the address.
func Unreachable(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &dns)
}
