// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/pemtext"
)

// Form is a proxy's form of a client's certificate in a header.
type Form string

// The forms.
const (
	RFC9440 Form = "rfc9440" // RFC 9440: an item of structured fields; the chain comes in Client-Cert-Chain
	XFCC    Form = "xfcc"    // Envoy's x-forwarded-client-cert: the element Cert
	PEM     Form = "pem"     // PEM with percent-encoding, as nginx writes it
)

// Forms are all forms.
var Forms = []Form{RFC9440, XFCC, PEM}

// Bounds of a proxy's headers.
const (
	maxCertificate = 64 << 10 // bytes of a header
	maxChain       = 8        // certificates of a chain
	maxHandedOn    = 1024     // kept verified certificates
)

// ProxyConfig selects the proxy handing certificates on, and their form.
type ProxyConfig struct {
	Header        string // the name of the header
	Form          Form
	From          []netip.Prefix // the addresses of the proxy
	Unix          bool           // the proxy connects by a Unix socket
	Roots         *x509.CertPool
	Intermediates []*x509.Certificate
}

// Proxy reads certificates handed on by a proxy. It may be used by any number of goroutines at once.
type Proxy struct {
	config ProxyConfig
	known  *lru.Cache[[sha256.Size]byte, handedOn] // by the values of the headers; only verified ones
}

// handedOn is a verified certificate.
type handedOn struct {
	peer identity.Peer
	from time.Time // when it was not valid before
}

// none is a proxy's value from a template without a certificate: no byte between two colons.
const none = "::"

// chainHeader is the header with the chain of a certificate (RFC 9440, §2.3).
const chainHeader = "Client-Cert-Chain"

// NewProxy returns a Proxy.
func NewProxy(c ProxyConfig) (*Proxy, error) {
	c.Header = http.CanonicalHeaderKey(c.Header)
	known, err := lru.New[[sha256.Size]byte, handedOn](maxHandedOn)
	return &Proxy{c, known}, err
}

// sent reports whether a request has come from the proxy.
func (p *Proxy) sent(r *http.Request) bool {
	if r.RemoteAddr == "" || r.RemoteAddr == "@" || strings.HasPrefix(r.RemoteAddr, "/") {
		return p.config.Unix
	}
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	for _, prefix := range p.config.From {
		if prefix.Contains(at.Addr().Unmap()) {
			return true
		}
	}
	return false
}

// forget removes the headers from a request.
func (p *Proxy) forget(r *http.Request) {
	delete(r.Header, p.config.Header)
	if p.config.Form == RFC9440 {
		delete(r.Header, chainHeader)
	}
}

// peer returns the peer of the certificate in a request of the proxy; the zero Peer for none.
func (p *Proxy) peer(r *http.Request) (identity.Peer, error) {
	values := r.Header[p.config.Header]
	switch {
	case len(values) == 0 || len(values) == 1 && (values[0] == "" || values[0] == none && p.config.Form == RFC9440):
		return identity.Peer{}, nil
	case len(values) > 1:
		return identity.Peer{}, fmt.Errorf("the header %s is there %d times", p.config.Header, len(values))
	}
	var chain []string
	if p.config.Form == RFC9440 {
		chain = r.Header[chainHeader]
	}
	all := values[0] + "\n" + strings.Join(chain, "\n")
	if len(all) > maxCertificate {
		return identity.Peer{}, fmt.Errorf("the header has more than %d bytes", maxCertificate)
	}
	key := sha256.Sum256([]byte(all)) // a caller could have large ones kept
	now := time.Now()
	if known, ok := p.known.Get(key); ok && !now.After(known.peer.Expires) && !now.Before(known.from) {
		return known.peer, nil
	}
	cert, others, err := p.parse(values[0], strings.Join(chain, ","))
	if err != nil {
		return identity.Peer{}, err
	}
	peer, err := p.verify(cert, others, now)
	if err == nil {
		p.known.Add(key, handedOn{peer, cert.NotBefore})
	}
	return peer, err
}

// verify verifies a certificate as TLS does a client's.
func (p *Proxy) verify(cert *x509.Certificate, others []*x509.Certificate, now time.Time) (identity.Peer, error) {
	intermediates := x509.NewCertPool()
	for _, c := range append(others, p.config.Intermediates...) {
		intermediates.AddCert(c)
	}
	chains, err := cert.Verify(x509.VerifyOptions{Roots: p.config.Roots, Intermediates: intermediates, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		return identity.Peer{}, err
	}
	peer := identity.OfConnection(&tls.ConnectionState{
		PeerCertificates: []*x509.Certificate{cert}, VerifiedChains: chains})
	if err := peer.Refusal(); err != nil {
		return identity.Peer{}, err
	}
	peer.Proof = identity.ByProxy
	return peer, nil
}

// parse reads the certificate in a header, and its chain.
func (p *Proxy) parse(value, chain string) (cert *x509.Certificate, others []*x509.Certificate, err error) {
	switch p.config.Form {
	case RFC9440:
		return parseRFC9440(value, chain)
	case XFCC:
		return parseXFCC(value)
	}
	certs, err := parsePEM(value)
	if err != nil {
		return nil, nil, err
	}
	return certs[0], certs[1:], nil
}

// parseRFC9440 reads a byte sequence of structured fields (RFC 8941, §3.3.5), and a list of them.
func parseRFC9440(value, chain string) (*x509.Certificate, []*x509.Certificate, error) {
	cert, err := parseByteSequence(value)
	if err != nil || strings.TrimSpace(chain) == "" {
		return cert, nil, err
	}
	items := strings.Split(chain, ",")
	if len(items) > maxChain {
		return nil, nil, fmt.Errorf("the chain has more than %d certificates", maxChain)
	}
	var others []*x509.Certificate
	for _, item := range items {
		c, err := parseByteSequence(item)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", chainHeader, err)
		}
		others = append(others, c)
	}
	return cert, others, nil
}

func parseByteSequence(s string) (*x509.Certificate, error) {
	s = strings.Trim(s, " \t")
	if len(s) < 2 || s[0] != ':' || s[len(s)-1] != ':' || strings.Contains(s[1:len(s)-1], ":") {
		return nil, errors.New("it is not one byte sequence between two colons")
	}
	der, err := base64.StdEncoding.DecodeString(s[1 : len(s)-1])
	if err != nil {
		return nil, errors.New("the bytes between the colons are not in base64")
	}
	return x509.ParseCertificate(der)
}

// parseXFCC reads the one element of Envoy's header. Several elements would come from several proxies, and the last
// proxy does not mark the certificates it has verified.
func parseXFCC(value string) (*x509.Certificate, []*x509.Certificate, error) {
	var cert, chain string
	for rest := value; rest != ""; {
		pair, after, err := cutPair(rest)
		if err != nil {
			return nil, nil, err
		}
		rest = after
		name, text, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, nil, errors.New("a part of the element has no value")
		}
		into := &cert
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "cert":
		case "chain":
			into = &chain
		default:
			continue
		}
		if *into != "" {
			return nil, nil, fmt.Errorf("the element has %s twice", name)
		}
		*into = strings.Trim(text, `"`) // the encoding leaves no quote in it
	}
	if cert == "" {
		return nil, nil, errors.New("the element has no Cert; let the proxy hand it on (set_current_client_cert_details)")
	}
	certs, err := parsePEM(cert)
	if err != nil {
		return nil, nil, err
	}
	if chain == "" {
		return certs[0], certs[1:], nil
	}
	others, err := parsePEM(chain)
	return certs[0], others, err
}

// cutPair cuts the first name and value off an element with possibly quoted values. A comma outside of quotes begins
// another element. Quotes are around a whole value, so a quote in the client's part does not hide the proxy's addition.
func cutPair(s string) (pair, rest string, err error) {
	begin := strings.IndexAny(s, `=";,`) + 1
	end := begin
	if begin > 0 && s[begin-1] == '=' && strings.HasPrefix(s[begin:], `"`) {
		for end++; end < len(s) && s[end] != '"'; end++ {
			if s[end] == '\\' {
				end++
			}
		}
		if end >= len(s) {
			return "", "", errors.New("a quote has no end")
		}
		end++
	} else if n := strings.IndexAny(s, `;,"`); n >= 0 {
		end = n
	} else {
		end = len(s)
	}
	switch {
	case end == len(s):
		return s, "", nil
	case s[end] == ';':
		return s[:end], s[end+1:], nil
	case s[end] == ',':
		return "", "", errors.New("there is more than one element")
	}
	return "", "", errors.New("quotes must be around a whole value")
}

// The lines of PEM around a certificate.
const (
	pemBegin = "-----BEGIN CERTIFICATE-----"
	pemEnd   = "-----END CERTIFICATE-----"
)

// parsePEM reads certificates in PEM with percent-encoding: the client's, and perhaps its chain. There is nothing else
// between them: a comma would separate a list, and its first item may come from the client.
func parsePEM(s string) (certs []*x509.Certificate, err error) {
	text, err := url.PathUnescape(s)
	if err != nil {
		return nil, errors.New("it is not percent-encoded")
	}
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		one, rest, ok := strings.Cut(text, pemEnd)
		if !ok || !strings.HasPrefix(one, pemBegin) || strings.Count(one, "-----BEGIN") > 1 {
			return nil, errors.New("it is not one certificate in PEM, or several with nothing between them")
		}
		if len(certs) == maxChain {
			return nil, fmt.Errorf("there are more than %d certificates", maxChain)
		}
		list, err := pemtext.Certificates([]byte(one+pemEnd), 1)
		if err != nil {
			return nil, err
		}
		certs, text = append(certs, list...), rest
	}
	if len(certs) == 0 {
		return nil, errors.New("there is no certificate in PEM")
	}
	return certs, nil
}
