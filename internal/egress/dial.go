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

// Defaults of a Dialer.
const (
	defaultTimeout = 10 * time.Second
	keepAlive      = 30 * time.Second
)

// Dialer opens connections allowed by its Policy. It has two dial functions, because plain http is allowed to fewer
// addresses than https: in an http.Transport, DialPlain is the DialContext and DialTLS the DialTLSContext. Without
// DialTLS no public address is reached. A Dialer may be used by any number of goroutines at once, and is not changed
// after its first use. The zero Dialer reaches public addresses, by https.
type Dialer struct {
	Policy   Policy
	Resolver *net.Resolver // default: net.DefaultResolver
	Timeout  time.Duration // for lookup, connection and TLS handshake together; default 10s
	// TLS is for https; default: the system's roots. For HTTP/2 its NextProtos name h2, as with any DialTLSContext.
	TLS *tls.Config
}

// DialPlain opens a connection for plain http. Only a refusal by the policy is a *RefusedError, no other error.
func (d *Dialer) DialPlain(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout())
	defer cancel()
	return d.dial(ctx, network, address, true)
}

// DialTLS opens a connection for https, with its TLS handshake. Only a refusal by the policy is a *RefusedError, no
// other error.
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
		return nil, &HandshakeError{Address: address, err: err}
	}
	return secure, nil
}

// HandshakeError is the error of a connection made, but with a failed TLS handshake.
type HandshakeError struct {
	Address string // as it was given to DialTLS
	err     error
}

// Error implements error.
func (e *HandshakeError) Error() string {
	return fmt.Sprintf("TLS handshake with %s: %v", e.Address, e.err)
}

// Unwrap returns the reason of the failure.
func (e *HandshakeError) Unwrap() error { return e.err }

func (d *Dialer) timeout() time.Duration {
	if d.Timeout > 0 {
		return d.Timeout
	}
	return defaultTimeout
}

// dial looks address up and connects to the first of its addresses allowed by the policy and answering. The policy is
// asked between the creation of a socket and its connect, so it judges the very address of the connection.
func (d *Dialer) dial(ctx context.Context, network, address string, plain bool) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, invalid("there is no address with a port")
	}
	var allowed atomic.Bool // one of the addresses; two of them may be dialed at the same time
	dialer := net.Dialer{
		KeepAlive: keepAlive,
		Resolver:  d.Resolver,
		ControlContext: func(ctx context.Context, network, address string, _ syscall.RawConn) error {
			err := d.control(ctx, host, network, address, plain)
			if err == nil {
				allowed.Store(true)
			}
			return err
		},
	}
	conn, err := dialer.DialContext(ctx, network, address)
	var refused *RefusedError
	switch {
	case !errors.As(err, &refused):
		return conn, err
	case allowed.Load():
		// The error of net is the first address's. This one was refused, but another one was not and did not answer, so a
		// later attempt may succeed.
		return nil, fmt.Errorf("dial %s: no allowed address of %s can be reached", network, host)
	default:
		named := *refused
		named.Host = host
		return nil, &named
	}
}

// control decides about one connection for a host. address is net's next destination: an address and a port.
func (d *Dialer) control(ctx context.Context, host, network, address string, plain bool) error {
	if !strings.HasPrefix(network, "tcp") {
		return invalid("only TCP is allowed")
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return invalid("there is no address")
	}
	if err := d.Policy.judge(to.Addr(), plain); err != nil {
		return err
	}
	if closed, err := d.closes(ctx, host, to); err != nil || !closed {
		return err
	}
	return &RefusedError{Kind: Closed, Addr: to.Addr(), Reason: closedReason}
}
