// SPDX-License-Identifier: Apache-2.0

package httptransport

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"syscall"

	"golang.org/x/net/http/httpguts"

	"github.com/aip-gateway/aip-gateway/internal/http1"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// dialer opens connections to an agent, and marks its errors: after them nothing can have reached the agent.
type dialer struct {
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	address string
	tls     *tls.Config // nil for plain HTTP
}

type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

// newDialer returns the dialer of the agent at a URL.
func newDialer(config *Config, u *url.URL) (dialer, error) {
	host, err := httpguts.PunycodeHostPort(u.Hostname())
	d := dialer{dial: config.Dial}
	port := "80"
	if u.Scheme == "https" {
		port, d.tls = "443", tlsConfig(config.TLS, u.Hostname())
	}
	d.address = net.JoinHostPort(host, cmp.Or(u.Port(), port))
	return d, err
}

func tlsConfig(config *tls.Config, host string) *tls.Config {
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
	return config
}

// connect opens a connection.
func (d *dialer) connect(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := d.dial(ctx, "tcp", d.address)
	if err != nil {
		return nil, dialError{err}
	}
	if d.tls == nil {
		return conn, nil
	}
	secure := http1.Secure(conn, d.tls)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, dialError{err}
	}
	return secure, nil
}

// DialFailed returns the error of a failed connection to an agent. unreachable is its sentence if the agent cannot be
// reached; an untrusted certificate, and a server without TLS, are errors to be corrected by an operator.
func DialFailed(err error, unreachable string) *task.Error {
	reason, detail := DialReason(err), unreachable
	switch reason {
	case upstream.OutOfFiles:
		detail = "the gateway cannot reach the agent: it has no file descriptors left"
	case upstream.CertificateUntrusted:
		detail = "the agent's certificate is not trusted"
	case upstream.NoTLS:
		detail = "the agent does not speak TLS at this URL"
	}
	return upstream.Failed(task.AgentUnavailable, reason, err, "%s", detail)
}

// DialReason returns the reason for a failed connection to an agent.
func DialReason(err error) upstream.Reason {
	var untrusted *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &untrusted):
		return upstream.CertificateUntrusted
	case errors.As(err, &plain):
		return upstream.NoTLS
	case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
		return upstream.OutOfFiles
	}
	return upstream.Unreachable
}

// IsTLSAlert reports whether the other end has ended TLS by an alert: in TLS 1.3, a server refusing a certificate says
// so only when the handshake is over for the client. It reads no request before.
func IsTLSAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}
