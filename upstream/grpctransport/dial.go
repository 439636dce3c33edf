// SPDX-License-Identifier: Apache-2.0

package grpctransport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// dialer opens connections to an agent, and marks its errors: after them nothing can have reached the agent.
type dialer struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	tls  *tls.Config // nil for the system's roots

	other atomic.Bool // the last server to answer without TLS does not speak HTTP/2
}

type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

var (
	errNoHTTP2 = errors.New("grpctransport: the server does not speak HTTP/2")
	errNoALPN  = fmt.Errorf("%w, or offers no h2 by ALPN", errNoHTTP2) // over TLS, nothing else says so
)

// plain opens a connection without TLS.
func (d *dialer) plain(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, dialError{err}
	}
	return &plainConn{Conn: conn, other: &d.other}, nil
}

// plainConn is a connection without TLS. Nothing has agreed on HTTP/2 there, so its first bytes tell: a server of
// HTTP/2 begins with a frame of SETTINGS (RFC 9113, section 3.4). The fourth byte is its type.
type plainConn struct {
	net.Conn
	other *atomic.Bool // of the transport: the last server to answer does not speak HTTP/2

	mu   sync.Mutex // held while it is read
	read int        // bytes, of the first four
}

// Read implements net.Conn.
func (c *plainConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	const typeAt, settings = 3, 4
	n, err := c.Conn.Read(p)
	if c.read > typeAt {
		return n, err
	}
	if at := typeAt - c.read; at < n {
		other := p[at] != settings
		if c.other.Store(other); other {
			return 0, errNoHTTP2
		}
	}
	c.read += n
	return n, err
}

// Write implements net.Conn. A server may have answered before it closed the connection. The answer is read then.
func (c *plainConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil && !c.other.Load() {
		c.Conn.SetReadDeadline(time.Now().Add(time.Second))
		_, _ = c.Read(make([]byte, 9)) // the connection is of no more use
	}
	return n, err
}

// secure opens a connection with TLS.
func (d *dialer) secure(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, dialError{err}
	}
	config := d.tls.Clone()
	if config == nil {
		config = new(tls.Config)
	}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(address)
	}
	config.NextProtos = []string{"h2"}
	secure := tls.Client(conn, config)
	err = secure.HandshakeContext(ctx)
	if err == nil && secure.ConnectionState().NegotiatedProtocol != "h2" ||
		httptransport.IsTLSAlert(err) && strings.Contains(err.Error(), "no application protocol") {
		err = errNoALPN
	}
	if err != nil {
		conn.Close()
		return nil, dialError{err}
	}
	return secure, nil
}
