// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/gunzip"
)

// Limits of reads from a registry.
const (
	maxHeader = 16 << 10 // bytes of an answer's header
	maxACS    = 1 << 20  // bytes of an ACS
	maxAnswer = 4 << 20  // bytes of another answer
)

// Config has the means to reach a registry.
type Config struct {
	// URL is the registry's, without a path: https, or http on this host.
	URL string
	// Roots are the roots for its certificate; nil for those of the system.
	Roots *x509.CertPool
	// Certificate returns the certificate for a registry asking for one, for one connection; nil for none.
	Certificate func(*tls.CertificateRequestInfo) (*tls.Certificate, error)
	// Timeout is for one request with its answer. Default: 15s.
	Timeout time.Duration
	// Transport is for tests. Default: one over the network.
	Transport http.RoundTripper
}

// Client asks a registry. It may be used by any number of goroutines at once.
type Client struct {
	base    string
	http    *http.Client
	timeout time.Duration
}

// New returns a Client.
func New(c Config) (*Client, error) {
	base, err := CheckURL(c.URL)
	if err != nil {
		return nil, err
	}
	if c.Timeout <= 0 {
		c.Timeout = 15 * time.Second
	}
	if c.Transport == nil {
		config := &tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS12, GetClientCertificate: c.Certificate}
		c.Transport = gunzip.Transport{Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: c.Timeout}).DialContext,
			TLSClientConfig:        config,
			TLSHandshakeTimeout:    c.Timeout,
			DisableKeepAlives:      true, // requests are rare
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeader,
		}}
	}
	return &Client{base: base, timeout: c.Timeout, http: &http.Client{
		Transport: c.Transport,
		// A redirect could lead credentials elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// CheckURL checks the URL of a registry, or of one of its services. It returns it without a slash at the end.
func CheckURL(s string) (string, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%q is no https URL", s)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("the URL must have no credentials, query and fragment")
	case u.Scheme == "http" && !local(u.Hostname()):
		return "", fmt.Errorf("%q must be https, because others on the way could read and change what is sent", s)
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// local reports whether a host is this one.
func local(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback() || host == "localhost"
}

// URL returns the registry's URL.
func (c *Client) URL() string { return c.base }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// ACS returns the ACS of an agent by its AIC, in its canonical form: a registry compares it as it is written. An AIC
// the registry cannot have assigned is Refused, an unknown one is NotFound, a disabled or deleted agent is Inactive.
func (c *Client) ACS(ctx context.Context, aic string) (json.RawMessage, error) {
	var acs json.RawMessage
	err := c.do(ctx, call{method: http.MethodGet, path: "/acps-atr-v2/acs/" + url.PathEscape(aic), limit: maxACS}, &acs)
	if err == nil && (len(acs) == 0 || acs[0] != '{') {
		err = &Error{Kind: Malformed, Detail: "the ACS is no object"}
	}
	return acs, err
}

// Get asks for a path with a query, and returns an answer of success. The caller closes its body, and reads it up to a
// limit of its own. Another answer is an *Error. The time for it is the context's.
func (c *Client) Get(ctx context.Context, path string, query url.Values) (*http.Response, error) {
	return c.send(ctx, call{method: http.MethodGet, path: path, query: query})
}

// call is a request.
type call struct {
	method, path string
	query        url.Values
	token        string // empty for none
	body         any    // url.Values make a form, others JSON; nil for none
	limit        int64  // of the answer, in bytes. Default: maxAnswer
}

// do sends a request, and reads the JSON of its answer; into may be nil. A broken-off answer is Unavailable.
func (c *Client) do(ctx context.Context, q call, into any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	res, err := c.send(ctx, q)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	limit := q.limit
	if limit == 0 {
		limit = maxAnswer
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	switch {
	case err != nil:
		return &Error{Kind: Unavailable, Cause: without(err)}
	case int64(len(body)) > limit:
		return &Error{Kind: Malformed, Status: res.StatusCode, Detail: fmt.Sprintf("it has more than %d bytes", limit)}
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return &Error{Kind: Malformed, Status: res.StatusCode, Cause: err}
	}
	return nil
}

// send sends a request, and returns an answer of success.
func (c *Client) send(ctx context.Context, q call) (*http.Response, error) {
	target := q.path
	if !strings.HasPrefix(target, "http") { // a target at another service has its own host
		target = c.base + target
	}
	if len(q.query) > 0 {
		target += "?" + q.query.Encode()
	}
	var body io.Reader
	kind := ""
	switch b := q.body.(type) {
	case nil:
	case url.Values:
		body, kind = strings.NewReader(b.Encode()), "application/x-www-form-urlencoded"
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		body, kind = bytes.NewReader(text), "application/json"
	}
	r, err := http.NewRequestWithContext(ctx, q.method, target, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json, application/problem+json")
	if kind != "" {
		r.Header.Set("Content-Type", kind)
		r.GetBody = nil // it is never sent twice
	}
	if q.token != "" {
		r.Header.Set("Authorization", "Bearer "+q.token)
	}
	res, err := c.http.Do(r)
	if err != nil {
		return nil, &Error{Kind: Unavailable, Cause: without(err)}
	}
	if res.StatusCode/100 != 2 {
		return nil, refusal(res)
	}
	return res, nil
}

// without returns the error of a request, without its URL.
func without(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
