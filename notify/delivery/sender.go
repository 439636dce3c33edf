// SPDX-License-Identifier: Apache-2.0

// Package delivery makes attempts to deliver notifications: one signed POST each, to an address permitted by the egress
// policy. It knows neither the content of a notification nor the time it is due.
package delivery

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/notify/sign"
)

// Config is the configuration of a Sender.
type Config struct {
	Timeout     time.Duration // of one attempt, from the lookup of the host to the end of the answer
	Connections int           // idle connections kept, to all receivers
	PerEndpoint int           // likewise, to one
	KeepBodies  bool          // an Outcome has the beginnings of the bodies

	Egress   *egress.Policy
	Keys     sign.Keys     // sign each attempt; without a key, attempts are not signed
	Resolver *net.Resolver // default: net.DefaultResolver
	TLS      *tls.Config   // default: the system's roots
	// Certificates are shown to the receivers of CertificateFor on their request for a client certificate, by Partner: the
	// operator trusts these. To any other server named by a Leader, the gateway would be that Partner.
	Certificates   map[string]ClientCertificate
	CertificateFor []egress.Server

	TracerProvider trace.TracerProvider // traces attempts; default: they are not traced
	Log            *slog.Logger         // of panics
}

// ClientCertificate returns the certificate for one connection, as tls.Config.GetClientCertificate.
type ClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error)

// maxAnswerHeader is the largest header of an answer to be read, in bytes.
const maxAnswerHeader = 16 << 10

// keptSetups is the number of earlier configurations kept: Configure closes their idle connections. An attempt in
// flight may still return a connection to an older one; it closes after idleTimeout.
const (
	keptSetups  = 3
	idleTimeout = 30 * time.Second
)

// Sender makes attempts. Its methods may be called by any number of goroutines at once.
type Sender struct {
	ctx   context.Context   // of every attempt
	trip  http.RoundTripper // for tests: replaces the network
	setup atomic.Pointer[setup]
	dials sync.WaitGroup

	mu     sync.Mutex // guards the fields below, and additions to dials
	closed bool
	setups []*setup // the present one and some earlier ones
}

// setup is a Config in force.
type setup struct {
	Config
	trip http.RoundTripper
	// shows are the transports of Partners with a certificate. Each has its own connections, since those of one Partner
	// are no proof of another.
	shows map[string]*http.Transport
}

// tripOf returns the carrier of the notifications of a Partner to a receiver.
func (c *setup) tripOf(partner string, receiver *url.URL) http.RoundTripper {
	if t := c.shows[partner]; t != nil && slices.Contains(c.CertificateFor, egress.ServerOf(receiver)) {
		return t
	}
	return c.trip
}

// closeIdle closes the connections not used by an attempt.
func (c *setup) closeIdle() {
	if t, is := c.trip.(*http.Transport); is {
		t.CloseIdleConnections()
	}
	for _, t := range c.shows {
		t.CloseIdleConnections()
	}
}

// New returns a Sender. Its attempts are canceled when ctx ends. It sends over trip, or over connections of its own if
// trip is nil. Configure must be called before Send.
func New(ctx context.Context, trip http.RoundTripper) *Sender { return &Sender{ctx: ctx, trip: trip} }

// Configure puts a configuration in force for all attempts that begin from now on.
func (s *Sender) Configure(c Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	next := &setup{Config: c, trip: s.trip, shows: make(map[string]*http.Transport)}
	if next.trip == nil {
		next.trip = s.transport(&c, nil)
		for partner, show := range c.Certificates {
			next.shows[partner] = s.transport(&c, show)
		}
		for _, old := range s.setups {
			old.closeIdle()
		}
		s.setups = append(s.setups[max(0, len(s.setups)-keptSetups):], next)
	}
	s.setup.Store(next)
}

// Close waits for all dials, and closes idle connections. It is called when the context of New has ended, and with it
// all attempts.
func (s *Sender) Close() {
	s.mu.Lock()
	s.closed = true
	setups := s.setups
	s.mu.Unlock()
	s.dials.Wait()
	for _, c := range setups {
		c.closeIdle()
	}
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// transport returns a transport of a configuration. Its connections show a certificate unless show is nil. It asks the
// egress policy at every dial, uses no proxy and speaks HTTP/1.1.
func (s *Sender) transport(c *Config, show ClientCertificate) *http.Transport {
	secure := c.TLS.Clone()
	if show != nil {
		if secure == nil {
			secure = new(tls.Config)
		}
		secure.GetClientCertificate = show
	}
	d := &egress.Dialer{Policy: *c.Egress, Resolver: c.Resolver, TLS: secure, Timeout: c.Timeout}
	return &http.Transport{
		DialContext:            s.owned(d.DialPlain),
		DialTLSContext:         s.owned(d.DialTLS),
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{},
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxAnswerHeader,
		MaxIdleConns:           c.Connections,
		MaxIdleConnsPerHost:    c.PerEndpoint,
		IdleConnTimeout:        idleTimeout,
	}
}

// owned makes the sender the owner of a dial: a Transport dials in goroutines of its own, and they continue when the
// attempt has ended.
func (s *Sender) owned(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (_ net.Conn, err error) {
		defer func() { // a panic in a goroutine of the Transport would end the process
			if v := recover(); v != nil {
				err = panicked(s.setup.Load().Log, v)
			}
		}()
		s.mu.Lock()
		closed := s.closed
		if !closed {
			s.dials.Add(1)
		}
		s.mu.Unlock()
		if closed {
			return nil, context.Canceled
		}
		defer s.dials.Done()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		return dial(ctx, network, address)
	}
}
