// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// What a Dialer does where it is not told otherwise.
const (
	defaultTimeout = 10 * time.Second
	keepAlive      = 30 * time.Second
)

// Dialer opens the connections that its Guard permits. It has two dial functions, because plain http is for
// fewer addresses than https: in an http.Transport, DialPlain is the DialContext and DialTLS the DialTLSContext.
// With DialTLS forgotten, nothing public is reached at all. It may be used by any number of goroutines at once,
// and is not changed after its first use. The zero Dialer reaches what is public, by https.
type Dialer struct {
	Policy   Policy
	Resolver *net.Resolver // default: net.DefaultResolver
	Timeout  time.Duration // for lookup, connection and TLS handshake together; default 10s
	// TLS is for https; default: the system's roots. For HTTP/2 its NextProtos name h2, as with any DialTLSContext.
	TLS *tls.Config
}

// DialPlain opens a connection for plain http. A refusal by the guard is an *Error, and only that is.
func (d *Dialer) DialPlain(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout())
	defer cancel()
	return d.dial(ctx, network, address, true)
}

// DialTLS opens a connection for https and shakes hands on it. A refusal by the guard is an *Error, and only
// that is.
func (d *Dialer) DialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout())
	defer cancel()
	conn, err := d.dial(ctx, network, address, false)
	if err != nil {
		return nil, err
	}
	config := d.TLS.Clone()
	if config == nil {
		config = &tls.Config{}
	}
	if config.ServerName == "" {
		host, _, _ := net.SplitHostPort(address) // dial has read it already
		config.ServerName = strings.TrimSuffix(host, ".")
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("TLS handshake with %s: %w", address, err)
	}
	return secure, nil
}

func (d *Dialer) timeout() time.Duration {
	if d.Timeout > 0 {
		return d.Timeout
	}
	return defaultTimeout
}

// dial looks address up and connects to the first of its addresses that the guard permits and that answers.
// The guard is asked between the creation of a socket and its connect, so what it sees is what is connected to.
func (d *Dialer) dial(ctx context.Context, network, address string, plain bool) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &RefusedError{Reason: "The webhook has no address with a port."}
	}
	var permitted atomic.Bool // one of the addresses was; two of them may be tried at the same time
	dialer := net.Dialer{
		KeepAlive: keepAlive,
		Resolver:  d.Resolver,
		ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
			err := d.Policy.control(network, address, plain)
			if err == nil {
				permitted.Store(true)
			}
			return err
		},
	}
	conn, err := dialer.DialContext(ctx, network, address)
	var refused *RefusedError
	switch {
	case !errors.As(err, &refused):
		return conn, err
	case permitted.Load():
		// net tells only about the first address. That one was refused, but another was not and did not answer,
		// so a later attempt may succeed.
		return nil, fmt.Errorf("dial %s: no permitted address of %s can be reached", network, host)
	default:
		named := *refused
		named.Host = host
		return nil, &named
	}
}

// control decides about one connection. address is what net is about to connect to: an address and a port.
func (g *Policy) control(network, address string, plain bool) error {
	if !strings.HasPrefix(network, "tcp") {
		return &RefusedError{Reason: "The webhook must be reached by TCP."}
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return &RefusedError{Reason: "The webhook has no address."}
	}
	return g.judge(to.Addr(), plain)
}
