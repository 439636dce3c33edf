// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/aip-gateway/aip-gateway/internal/egress"
)

// dial connects to a broker and logs in. All of it ends when ctx does, and after an error no goroutine and no socket
// stays. A virtual host unknown to the broker is tried without the slash at its beginning: AIP writes one (v01.00
// §7.3), but a URL of AMQP has it only before the name.
func dial(ctx context.Context, c Config) (*amqp.Connection, *socket, *Error) {
	connection, s, err := handshake(ctx, c)
	name, slash := strings.CutPrefix(c.Address.VHost, "/")
	if err == nil || err.Kind != VHostRefused || !slash || name == "" || !strings.Contains(err.Reason, notFound) {
		return connection, s, err
	}
	c.Address.VHost = name
	if connection, s, again := handshake(ctx, c); again == nil || again.Kind != VHostRefused {
		return connection, s, again
	}
	return nil, nil, err
}

// notFound is in RabbitMQ's words about an unknown virtual host.
const notFound = "not found"

// handshake is dial for one virtual host.
func handshake(ctx context.Context, c Config) (*amqp.Connection, *socket, *Error) {
	open := c.Dialer.DialPlain
	if c.Address.TLS {
		open = c.Dialer.DialTLS
	}
	conn, err := open(ctx, "tcp", c.Address.HostPort())
	if err != nil {
		return nil, nil, c.Address.dialFailed(ctx, err)
	}
	s := newSocket(conn)
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	login := &login{Login: c.Login, properties: amqp.Table{
		"product": "aip-gateway", "platform": "golang", "connection_name": c.Name}}
	connection, err := amqp.Open(s, amqp.Config{
		SASL: []amqp.Authentication{login}, Vhost: c.Address.VHost, Heartbeat: heartbeat, Locale: "en_US",
		FrameSize: 131072, Properties: login.properties,
	})
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = s.Close()
		return nil, nil, c.Address.loginFailed(ctx, err, s, login, connection)
	}
	return connection, s, nil
}

// login is the SASL exchange of a Login.
type login struct {
	Login
	properties amqp.Table // of the client; the library adds its capabilities before it asks for the response
	asked      bool       // the broker has answered, and the login was sent
}

// Mechanism implements amqp.Authentication.
func (l *login) Mechanism() string { return l.mechanism }

// Response implements amqp.Authentication. It adds a capability missing in the library: a broker knowing it reports the
// refusal of a login, instead of closing the connection without a reason.
func (l *login) Response() string {
	l.asked = true
	if capabilities, ok := l.properties["capabilities"].(amqp.Table); ok {
		capabilities[failureClose] = true
	}
	if l.mechanism == "EXTERNAL" {
		return ""
	}
	return "\x00" + l.user + "\x00" + l.secret
}

// failureClose is the capability of a broker to report a refused login.
const failureClose = "authentication_failure_close"

// dialFailed is the error of a connection not made.
func (a Address) dialFailed(ctx context.Context, err error) *Error {
	var refused *egress.RefusedError
	var handshake *egress.HandshakeError
	var dns *net.DNSError
	var errno syscall.Errno
	switch {
	case errors.As(err, &refused):
		reason := refused.Reason
		if refused.Kind == egress.NotEncrypted {
			reason = "the address is public, so the connection must use TLS"
		}
		return a.fail(AddressRefused, err, reason)
	case ctx.Err() != nil:
		return a.fail(NoAnswer, err, "there was no connection in time")
	case errors.As(err, &handshake):
		return a.fail(TLSFailed, err, "the TLS handshake failed: "+tlsReason(handshake))
	case errors.As(err, &dns):
		if dns.IsNotFound {
			return a.fail(Unreachable, err, "the host is unknown")
		}
		return a.fail(Unreachable, err, "the host could not be looked up")
	case errors.As(err, &errno):
		return a.fail(Unreachable, err, errno.Error())
	default:
		return a.fail(Unreachable, err, "the connection failed")
	}
}

// tlsReason returns the reason of a failed TLS handshake, without addresses.
func tlsReason(err error) string {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case errors.As(err, &certificate):
		return certificate.Err.Error()
	case errors.As(err, &record):
		return "the answer is not TLS"
	case errors.As(err, &alert):
		return alert.Error()
	default:
		return "the connection was lost"
	}
}

// loginFailed is the error of a failed handshake of AMQP.
func (a Address) loginFailed(ctx context.Context, err error, s *socket, l *login, c *amqp.Connection) *Error {
	var said *amqp.Error
	isAMQP := errors.As(err, &said)
	received, ended := s.ended()
	switch {
	case isAMQP && said.Server && said.Code == amqp.AccessRefused:
		return a.fail(LoginRefused, err, said.Reason)
	case isAMQP && said.Server && (said.Code == amqp.NotAllowed || said.Code == amqp.InvalidPath):
		return a.fail(VHostRefused, err, said.Reason)
	case isAMQP && said.Server:
		return a.fail(Refused, err, said.Reason)
	case errors.Is(err, amqp.ErrSASL):
		return a.fail(LoginRefused, err, "the broker does not offer "+l.mechanism)
	case ctx.Err() != nil && l.asked:
		return a.fail(NoAnswer, err, "the broker did not answer the login in time")
	case ctx.Err() != nil:
		return a.fail(NoAnswer, err, "nothing that speaks AMQP answered in time")
	case errors.As(ended, new(tls.AlertError)):
		return a.fail(TLSFailed, err, "the broker ended the TLS connection: "+tlsReason(ended))
	case !l.asked && received:
		return a.fail(NotAMQP, err, "the answer is not AMQP 0-9-1")
	case !l.asked:
		return a.fail(NotAMQP, err, "the connection was closed without an answer")
	case errors.Is(err, amqp.ErrCredentials) && errors.Is(ended, io.EOF) && !saysWhy(c):
		return a.fail(LoginRefused, err, "the broker closed the connection at the login")
	default:
		return a.fail(Closed, err, "the connection was lost at the login")
	}
}

// saysWhy reports whether a broker reports refusals of logins.
func saysWhy(c *amqp.Connection) bool {
	capabilities, _ := c.Properties["capabilities"].(amqp.Table)
	is, _ := capabilities[failureClose].(bool)
	return is
}
