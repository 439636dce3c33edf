// SPDX-License-Identifier: Apache-2.0

package httptransport

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"syscall"

	"github.com/aip-gateway/aip-gateway/upstream"
)

// dialer opens connections, and marks its errors: after them nothing can have reached the agent.
type dialer struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

func (d dialer) plain(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, dialError{err}
	}
	return conn, nil
}

func (d dialer) tls(config *tls.Config, host string) func(ctx context.Context, network, address string) (net.Conn,
	error) {
	if config == nil {
		config = &tls.Config{}
	}
	config = config.Clone()
	if config.ServerName == "" {
		config.ServerName = host
	}
	config.NextProtos = []string{"http/1.1"}
	if config.ClientSessionCache == nil {
		config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		plain, err := d.dial(ctx, network, address)
		if err != nil {
			return nil, dialError{err}
		}
		conn := tls.Client(plain, config)
		if err := conn.HandshakeContext(ctx); err != nil {
			plain.Close()
			return nil, dialError{err}
		}
		return conn, nil
	}
}

// DialReason returns why no connection to an agent came about: a certificate that is not trusted, and a server without
// TLS, do not pass by themselves.
func DialReason(err error) upstream.Reason {
	var untrusted *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &untrusted) || errors.As(err, &plain):
		return upstream.CertificateUntrusted
	case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
		return upstream.OutOfFiles
	}
	return upstream.Unreachable
}

// isTLSAlert reports whether the other end has ended TLS by an alert: in TLS 1.3, a server that refuses a certificate
// says so only when the handshake is over for the client. It reads no request before.
func isTLSAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}
