// SPDX-License-Identifier: Apache-2.0

package grpctransport

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// dialer opens connections to an agent, and marks its errors: after them nothing can have reached the agent.
type dialer struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	tls  *tls.Config // nil for the system's roots
}

type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

var errNoHTTP2 = errors.New("grpctransport: the agent's server does not speak HTTP/2, which gRPC needs")

// plain opens a connection without TLS.
func (d *dialer) plain(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, dialError{err}
	}
	return conn, nil
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
	if err == nil && secure.ConnectionState().NegotiatedProtocol != "h2" {
		err = errNoHTTP2
	}
	if err != nil {
		conn.Close()
		return nil, dialError{err}
	}
	return secure, nil
}
