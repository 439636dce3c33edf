// SPDX-License-Identifier: Apache-2.0

// Package broker connects the gateway to RabbitMQ, by AMQP 0-9-1. It knows no tasks and no AIP.
//
// A Link is one group on a connection: its own queue, bound to the group's exchange, to consume from, and the exchange,
// to publish to with confirms. Links of one owner with the same broker and login share connections. A Link does not
// reconnect: when it has ended (Link.Done), its owner joins again.
package broker

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/egress"
)

// Limits of a Link and of a Pool.
const (
	// DefaultTimeout is for the whole of Pool.Join: lookup, connection, TLS, login and topology. RabbitMQ holds back the
	// answer to a refused login for 3 s.
	DefaultTimeout = 4500 * time.Millisecond
	// DefaultPrefetch is the most unacknowledged messages of a Link.
	DefaultPrefetch = 64
	// DefaultMaxMessage is the largest size of a received message, in bytes.
	DefaultMaxMessage = 4 << 20
	// MaxUnconfirmed is the most unconfirmed publications of a Link.
	MaxUnconfirmed = 256

	// queueExpires is the time after which a broker deletes a queue without a consumer, by default. A gateway may be away
	// for less than that.
	queueExpires = 14 * 24 * time.Hour

	heartbeat          = 10 * time.Second
	linksPerConnection = 128
	joinsPerConnection = 16               // at a time: more of them only slow each other down, until all are too late
	closeTimeout       = time.Second      // for the broker's answer when a channel or a connection is closed
	silenceTimeout     = 30 * time.Second // for the same of a channel, until the connection counts as dead
	endTimeout         = 3 * closeTimeout // for a link to end, including its last writes
	undoTimeout        = 10 * time.Second // for the answers a failed join still needs to leave nothing behind
	lateTimeout        = 2 * time.Second  // for the same if no other link uses the connection
)

// Address is the address of a broker.
type Address struct {
	Host  string
	Port  uint16
	VHost string
	TLS   bool
}

// HostPort is the address as it is dialed.
func (a Address) HostPort() string { return net.JoinHostPort(a.Host, strconv.Itoa(int(a.Port))) }

// Login is a login of the gateway to a broker. Logins can be compared.
type Login struct {
	mechanism string
	user      string
	secret    string
	userID    string
}

// Password is a login with a user name and a password. Messages carry the user name as their user-id.
func Password(user, password string) Login {
	return Login{mechanism: "PLAIN", user: user, secret: password, userID: user}
}

// Token is a login with a JSON Web Token. The broker reads the user in the token, so messages carry no user-id. name is
// the user if the token has none.
func Token(name, token string) Login { return Login{mechanism: "PLAIN", user: name, secret: token} }

// Certificate is a login with the client certificate of the TLS connection, issued to user.
func Certificate(user string) Login { return Login{mechanism: "EXTERNAL", userID: user} }

// String implements fmt.Stringer, without the secret.
func (l Login) String() string { return fmt.Sprintf("%s login of %q", l.mechanism, l.user) }

// GoString implements fmt.GoStringer, without the secret.
func (l Login) GoString() string { return l.String() }

// Config is the input of Pool.Join.
type Config struct {
	// Owner separates connections: only links with the same owner, address, login and dialer share one.
	Owner string
	// Name is the connection's name, as the broker shows it.
	Name    string
	Address Address
	Login   Login
	// Dialer opens the connection. Its policy judges the address, and its TLS configuration has the roots and the client
	// certificate. The host must match the broker's certificate.
	Dialer *egress.Dialer

	// Exchange must exist, unless Topic says to make it. RoutingKey is for the binding of the queue and for publications.
	// Without an exchange, the link only reads the queue: nothing is bound, and nothing can be published.
	Exchange   string
	RoutingKey string
	Queue      string
	// Topic says to make the exchange if it is not there: a durable one of type topic.
	Topic bool
	// Declare says to make the queue if it is not there: durable, not exclusive, and deleted when no consumer has used it
	// for the time Expires; default 14 days. Its messages are kept for KeepMessages; 0 for no end. Without Declare a
	// missing queue is an error of kind QueueGone.
	Declare               bool
	Expires, KeepMessages time.Duration
	// Prefetch is the most unacknowledged messages; default DefaultPrefetch.
	Prefetch int
	// MaxMessage is the largest size of a received message, in bytes; default DefaultMaxMessage. The body of a larger one
	// is dropped while it arrives.
	MaxMessage int
}

// Info is a broker's description of itself.
type Info struct {
	Product     string
	Version     string
	ClusterName string
	VHost       string // without the slash of Config.Address if the broker knows it so
}

// Kind is the kind of an Error.
type Kind uint8

// The kinds.
const (
	Unreachable      Kind = iota + 1 // no connection: unknown host, refused, no route
	AddressRefused                   // the gateway may not connect there (egress)
	NoAnswer                         // not all answers came in time
	NotAMQP                          // the answer is in another protocol
	TLSFailed                        // the TLS handshake failed, or the certificate is not the host's
	LoginRefused                     // wrong password or token, expired token, no common mechanism
	VHostRefused                     // the virtual host is not there, or not for this user
	PermissionDenied                 // the user may not do this to the exchange or the queue
	NoExchange                       // the exchange is not there
	QueueGone                        // the queue is not there, or was deleted
	Refused                          // the broker refused an operation for another reason
	Closed                           // the connection was lost, or closed by the broker or the gateway
)

var kindNames = [...]string{Unreachable: "unreachable", AddressRefused: "address refused", NoAnswer: "no answer",
	NotAMQP: "not AMQP", TLSFailed: "TLS failed", LoginRefused: "login refused", VHostRefused: "virtual host refused",
	PermissionDenied: "permission denied", NoExchange: "no exchange", QueueGone: "queue gone", Refused: "refused",
	Closed: "connection closed"}

// String implements fmt.Stringer.
func (k Kind) String() string { return kindNames[k] }

// Error is the error of a Link that could not be made, or has ended. All errors of this package are of type *Error.
type Error struct {
	Kind   Kind
	Host   string
	Port   uint16
	Reason string // for the caller: it has no addresses behind the host's name, and no secrets
	err    error
}

// Error implements error. Unlike Reason, it may be logged but not shown to a caller.
func (e *Error) Error() string {
	s := fmt.Sprintf("broker %s: %s: %s", net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))), e.Kind, e.Reason)
	if e.err != nil {
		s += ": " + e.err.Error()
	}
	return s
}

// Unwrap returns the cause, if there is one.
func (e *Error) Unwrap() error { return e.err }

// fail makes an Error about the broker at an address.
func (a Address) fail(kind Kind, cause error, reason string) *Error {
	return &Error{Kind: kind, Host: a.Host, Port: a.Port, Reason: reason, err: cause}
}
