// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/gunzip"
	"github.com/aip-gateway/aip-gateway/internal/retryafter"
)

const (
	maxHeader     = 16 << 10 // bytes read of an answer's header
	maxRetryAfter = time.Hour
)

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// newClient returns a client that follows no redirects, and trusts roots; nil for the system's.
func (c *Checker) newClient(roots *x509.CertPool) *http.Client {
	dialer := &net.Dialer{}
	secure := &tls.Dialer{NetDialer: dialer, Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	return &http.Client{
		Transport: gunzip.Transport{Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            c.owned(dialer.DialContext),
			DialTLSContext:         c.owned(secure.DialContext),
			DisableKeepAlives:      true, // requests are rare
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeader,
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// owned makes the Checker the owner of a dial: a Transport dials in goroutines of its own, and these continue when the
// request has ended.
func (c *Checker) owned(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if !c.enter() {
			return nil, context.Canceled
		}
		defer c.work.Done()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(c.ctx, cancel)()
		return dial(ctx, network, address)
	}
}

// enter adds to the work Close waits for, until c.work.Done. It returns false after Close.
func (c *Checker) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.work.Add(1)
	}
	return !c.closed
}

// retryAfter returns the time an answer asks for before the next request; 0 for none.
func retryAfter(answer *http.Response) time.Duration {
	return retryafter.Read(answer.Header.Get("Retry-After"), time.Now(), maxRetryAfter)
}
