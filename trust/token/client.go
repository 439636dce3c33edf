// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/aip-gateway/aip-gateway/internal/egress"
)

// discovery is the path below an issuer at which its OpenID configuration is.
const discovery = "/.well-known/openid-configuration"

// client fetches the keys of one issuer.
type client struct {
	issuer, jwks string
	policy       egress.Policy
	http         http.Client
}

// maxHeader is the largest header of an answer that is read, in bytes.
const maxHeader = 16 << 10

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// newClient returns a client whose dials are passed through owned.
func newClient(c *Config, owned func(dialFunc) dialFunc) *client {
	dialer := &egress.Dialer{Policy: c.Egress, TLS: &tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS12}}
	return &client{issuer: c.Issuer, jwks: c.JWKS, policy: c.Egress, http: http.Client{
		Transport: &http.Transport{
			DialContext:            owned(dialer.DialPlain),
			DialTLSContext:         owned(dialer.DialTLS),
			TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{},
			DisableKeepAlives:      true, // there is one request in minutes
			MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// keys fetches the keys.
func (c *client) keys(ctx context.Context) (*keySet, error) {
	url := c.jwks
	if url == "" {
		var err error
		if url, err = c.discover(ctx); err != nil {
			return nil, err
		}
	}
	body, err := c.get(ctx, url)
	if err != nil {
		return nil, err
	}
	return readKeys(body)
}

// discover returns the URL of the keys by the issuer's OpenID configuration (OpenID Connect Discovery 1.0 §4).
func (c *client) discover(ctx context.Context) (string, error) {
	body, err := c.get(ctx, strings.TrimSuffix(c.issuer, "/")+discovery)
	if err != nil {
		return "", err
	}
	var document struct {
		Issuer string `json:"issuer"`
		JWKS   string `json:"jwks_uri"`
	}
	switch err := json.Unmarshal(body, &document); {
	case err != nil:
		return "", fmt.Errorf("the OpenID configuration cannot be read: %w", err)
	case document.Issuer != c.issuer:
		return "", fmt.Errorf("the OpenID configuration is that of another issuer, %.200q", document.Issuer)
	case document.JWKS == "":
		return "", errors.New("the OpenID configuration has no jwks_uri")
	}
	return document.JWKS, nil
}

// get fetches a document.
func (c *client) get(ctx context.Context, url string) ([]byte, error) {
	if _, err := c.policy.CheckURL(url); err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s is answered with %s", url, answer.Status)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxSet+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("GET %s: %w", url, err)
	case len(body) > maxSet:
		return nil, fmt.Errorf("the answer to GET %s has more than %d bytes", url, maxSet)
	}
	return body, nil
}
