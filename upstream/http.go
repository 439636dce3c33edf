// SPDX-License-Identifier: Apache-2.0

// Package upstream carries a dialect's messages to the agent and brings back what it says. It knows how
// connections fail; what the messages mean is the codec's business.
package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/internal/bufpool"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/sseproxy"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Config says how an agent is reached. URL and Codec are required; zero means the default of everything else.
type Config struct {
	URL   string           // the agent's endpoint, http or https
	Codec translate.Client // the agent's dialect

	// Header is sent with every request: the gateway's credentials for the agent. It is never logged.
	Header http.Header
	TLS    *tls.Config // for https; default: the system's roots

	IdleTimeout  time.Duration // for how long the agent may send nothing, and change nothing when asked; default 5m
	StallTimeout time.Duration // after a cut, for how long a task may stand still before it counts as lost; default 30s
	RetryFor     time.Duration // for how long a turn that the agent has not got is sent again; 0 for not at all
	Slots        *Slots        // for the requests under way; default: 1024
	MaxReply     int           // greatest size of an answer, in bytes; default 16 MiB
	MaxEvent     int           // greatest size of one event of a stream, in bytes; default MaxReply

	// Callbacks takes what the agent pushes, at CallbackURL; nil if it has nowhere to. Pushes reports whether the
	// agent pushes and has no streams, so that it is told where to; nil for no.
	Callbacks   *Callbacks
	CallbackURL string
	Pushes      func(context.Context) bool

	Logger *slog.Logger // default: slog.Default
	// Dial opens the connections; default: TCP, directly. The proxy settings of the environment are not looked at.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// The defaults, and what is not for an operator to choose.
const (
	defaultSilence  = 5 * time.Minute
	defaultLost     = 30 * time.Second
	defaultMaxReply = 16 << 20
	defaultSlots    = 1024

	dialTimeout = 10 * time.Second // TLS included
	// Many agents close a connection that was idle for 5 s. To send on one that is just being closed would leave
	// it open whether the agent has got the message, so the gateway closes it first.
	idleTimeout    = 4 * time.Second
	maxIdle        = 1024 // idle connections
	maxHeaderBytes = 64 << 10
	// After the last event, for how long the agent's end of the stream is awaited: then the connection can be
	// used again. Some agents never end it.
	linger = 20 * time.Millisecond
)

// HTTP is an agent that is reached by POST. It implements partner.Agent.
type HTTP struct {
	config       Config
	url          *url.URL
	host         string
	unary, event http.Header // of requests that want one answer, or a stream. Never changed
	transport    *http.Transport
	log          *slog.Logger

	rpc, events *place // where it is asked for one answer, and for a stream

	namer      bool // the agent names its tasks itself
	repeats    bool // the agent answers a start that it has by its task
	actsLate   bool // the agent may leave a task unchanged while it acts on a continue
	names      names
	streamless atomic.Bool // the agent has said that it has no streams

	jitter func(time.Duration) time.Duration // of what is done again and again
}

var _ partner.Agent = (*HTTP)(nil)

// NewHTTP returns the agent at config.URL. Nothing is sent before it is used.
func NewHTTP(config Config) (*HTTP, error) {
	u, err := url.Parse(config.URL)
	switch {
	case err != nil:
		return nil, errors.New("the agent's URL cannot be read") // err quotes it, and it may hold a password
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("the agent's URL must begin with http:// or https:// and a host")
	case u.User != nil:
		return nil, &Error{Reason: URLHasCredentials, Err: errors.New("the agent's URL must not hold credentials")}
	case config.Codec == nil:
		return nil, errors.New("the agent's dialect is missing")
	}
	for name, values := range config.Header {
		for _, v := range values {
			if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(v) {
				return nil, &Error{
					Reason: InvalidHeader,
					Err:    fmt.Errorf("the header field %q has a name or a value that HTTP does not allow", name),
				}
			}
		}
	}
	u.Fragment, u.RawFragment = "", ""
	config.IdleTimeout = or(config.IdleTimeout, defaultSilence)
	config.StallTimeout = or(config.StallTimeout, defaultLost)
	config.MaxReply = or(config.MaxReply, defaultMaxReply)
	config.MaxEvent = or(config.MaxEvent, config.MaxReply)
	if config.Slots == nil {
		config.Slots = NewSlots(defaultSlots)
	}
	h := &HTTP{config: config, url: u, log: config.Logger, jitter: spread}
	_, h.namer = config.Codec.(translate.Namer)
	_, h.repeats = config.Codec.(translate.Repeater)
	_, h.actsLate = config.Codec.(translate.LateActor)
	h.rpc, h.events = places(u, config.Codec)
	if h.log == nil {
		h.log = slog.Default()
	}
	if config.Dial == nil {
		config.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
	h.transport = &http.Transport{
		DialContext:            dialer{config.Dial}.plain,
		DialTLSContext:         dialer{config.Dial}.tls(config.TLS, u.Hostname()),
		DisableCompression:     true,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdle,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
	h.host = config.Header.Get("Host") // net/http wants it apart
	h.unary, h.event = http.Header{}, http.Header{}
	for _, own := range []http.Header{h.unary, h.event} {
		own.Set("User-Agent", "aip-gateway")
		for name, values := range config.Header {
			if name = http.CanonicalHeaderKey(name); name != "Host" {
				own[name] = values
			}
		}
		for _, f := range config.Codec.Header() {
			own.Set(f.Name, f.Value)
		}
		own.Set("Content-Type", "application/json")
	}
	h.unary.Set("Accept", "application/json")
	h.event.Set("Accept", "text/event-stream")
	return h, nil
}

func or[T time.Duration | int](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

// Close closes the idle connections. Runs that go on are ended by their contexts.
func (h *HTTP) Close() { h.transport.CloseIdleConnections() }

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

func (d dialer) tls(config *tls.Config, host string) func(ctx context.Context, network, address string) (net.Conn, error) {
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

// exchange is one request and its answer, which comes in while it is read.
type exchange struct {
	http   *HTTP
	parent context.Context
	ctx    context.Context
	cancel context.CancelCauseFunc
	quiet  *time.Timer // fires when nothing comes in for too long
	span   span
	res    *http.Response
}

var errSilent = errors.New("upstream: the agent is silent")

// errand is a request to the agent.
type errand struct {
	what translate.Operation
	ref  agent.Ref
	body []byte

	// again makes the body, where it is large: it is not kept while the agent is at work. Nil where body is it.
	again func() []byte
}

// target returns the method of HTTP and the URL that an errand is run with at a place.
func (h *HTTP) target(e errand, base *url.URL) (string, *url.URL) {
	b, ok := h.config.Codec.(translate.Binder)
	if !ok {
		return http.MethodPost, base
	}
	method, path := b.Bind(e.what, e.ref)
	path, query, _ := strings.Cut(path, "?")
	u := *base
	u.RawPath = strings.TrimSuffix(u.EscapedPath(), "/") + path
	if clean, err := url.PathUnescape(u.RawPath); err == nil {
		u.Path = clean
	}
	if query != "" {
		if u.RawQuery != "" {
			query = u.RawQuery + "&" + query
		}
		u.RawQuery = query
	}
	return method, &u
}

// open sends a request to base and waits for the head of the answer. With an error the exchange is closed already. The
// body must not be changed: the transport may go on reading it after the answer has come.
func (h *HTTP) open(ctx context.Context, e errand, base *url.URL, header http.Header) (*exchange, error) {
	x := &exchange{http: h, parent: ctx}
	body := e.body
	if e.again != nil {
		body = e.again()
	}
	method, target := h.target(e, base)
	if method == http.MethodGet {
		body = nil
	}
	header, x.span = startSpan(ctx, h.url, body, header)
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	x.quiet = time.AfterFunc(h.config.IdleTimeout, func() { x.cancel(errSilent) })
	req := (&http.Request{Method: method, URL: target, Host: h.host, Header: header}).WithContext(x.ctx)
	if len(body) > 0 {
		req.ContentLength = int64(len(body))
		req.Body, req.GetBody = content(body, e.again)
	}
	var err error
	if x.res, err = h.transport.RoundTrip(req); err != nil {
		err = x.broken(err, "before it answered")
		x.close(err)
		return nil, err
	}
	x.span.status(x.res.StatusCode)
	return x, nil
}

// Read reads the body of the answer. Any byte ends the silence.
func (x *exchange) Read(p []byte) (int, error) {
	n, err := x.res.Body.Read(p)
	if n > 0 {
		x.quiet.Reset(x.http.config.IdleTimeout)
	}
	return n, err
}

// close ends the exchange. Its connection is used again if the answer was read to its end.
func (x *exchange) close(err error) {
	x.quiet.Stop()
	if x.res != nil {
		x.res.Body.Close()
	}
	x.cancel(nil)
	x.span.end(err)
}

// broken says what an error of the connection means.
func (x *exchange) broken(err error, when string) *task.Error {
	var dial dialError
	switch {
	case x.parent.Err() != nil:
		return ended(x.parent)
	case context.Cause(x.ctx) == errSilent:
		return task.Errorf(task.AgentTimeout, "the agent was silent for %v", x.http.config.IdleTimeout)
	case errors.As(err, &dial) && isStarved(err):
		return task.Errorf(task.AgentUnavailable, "the gateway cannot reach the agent: it has no file descriptors left").WithCause(err)
	case errors.As(err, &dial):
		return task.Errorf(task.AgentUnavailable, "the agent cannot be reached").WithCause(err)
	case alerted(err):
		return Failed(task.AgentUnavailable, CertificateRefused, err, "the agent refuses the gateway's client certificate; the operator must check it")
	}
	return task.Errorf(task.InvalidAgentResponse, "the connection to the agent broke %s", when).WithCause(errors.Join(errPassing, err))
}

// alerted reports whether the other end has ended TLS by an alert: in TLS 1.3, one that does not take a certificate says
// so only when the handshake is over for the client. It reads no request before.
func alerted(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}

// errPassing marks an error that says nothing of the agent for good: it may be restarting.
var errPassing = errors.New("upstream: it may pass")

// passes reports whether it is worth asking again after an error.
func passes(err error) bool {
	switch task.KindOf(err) {
	case task.AgentUnavailable, task.AgentTimeout, task.Internal:
		return true
	}
	return errors.Is(err, errPassing)
}

// ended is the error of a run that nobody waits for any more.
func ended(ctx context.Context) *task.Error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		return task.Errorf(task.AgentTimeout, "the agent did not answer in time").WithCause(cause)
	}
	return task.Errorf(task.Internal, "the gateway no longer waits for the agent").WithCause(cause)
}

// mediaType returns the answer's media type, for comparison and for people.
func (x *exchange) mediaType() string {
	t, _, err := mime.ParseMediaType(x.res.Header.Get("Content-Type"))
	if err != nil || len(t) > 64 {
		return "no media type"
	}
	return t
}

func (x *exchange) streams() bool { return x.mediaType() == "text/event-stream" }

// events returns a reader of the answer's events.
func (x *exchange) events() *sseproxy.Reader {
	max := x.http.config.MaxEvent
	return sseproxy.NewReader(x, sseproxy.Limits{Line: max + len("data: "), Event: max})
}

var replies = bufpool.Pool{Largest: 256 << 10}

// reply reads the whole answer.
func (x *exchange) reply(known []task.Product) (agent.Report, error) {
	in := replies.Get()
	defer replies.Put(in)
	max := x.http.config.MaxReply
	if n := x.res.ContentLength; n > int64(max) {
		return agent.Report{}, x.tooLarge(max)
	}
	var err error
	if *in, err = bufpool.ReadAll(*in, io.LimitReader(x, int64(max)+1)); err != nil {
		return agent.Report{}, x.broken(err, "in the middle of its answer")
	}
	if len(*in) > max {
		return agent.Report{}, x.tooLarge(max)
	}
	rep, err := x.http.config.Codec.Reply(*in, known)
	if err != nil {
		return agent.Report{}, x.refused(err)
	}
	return rep, nil
}

func (x *exchange) tooLarge(max int) error {
	return task.Errorf(task.InvalidAgentResponse, "the agent's answer is larger than %d bytes", max)
}

// refused adds to an error what HTTP says about it. An answer that the codec understands stands for itself.
func (x *exchange) refused(err error) error {
	kind, status := task.KindOf(err), x.res.StatusCode
	if kind != task.InvalidAgentResponse && kind != task.Internal {
		return err
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		// Not AuthorizationFailed: the Leader would take it for its own.
		return Failed(task.InvalidAgentResponse, CredentialsRefused, err,
			"the agent refuses the gateway's credentials (HTTP %d); the operator must check them", status)
	}
	if kind != task.InvalidAgentResponse {
		return err
	}
	media := x.mediaType()
	switch {
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		return task.Errorf(task.AgentUnavailable, "the agent takes no requests now (HTTP %d)", status).
			WithCause(errors.Join(busy(x.res.Header.Get("Retry-After")), err))
	case status >= 300 && status < 400:
		return Failed(kind, Redirected, err, "the agent redirects (HTTP %d), which is not followed; the operator must give its final URL", status)
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusGone:
		return task.Errorf(kind, "no agent answers at the agent's URL (HTTP %d, %s)", status, media).WithCause(errors.Join(errNoAgent, err))
	}
	if status == http.StatusBadGateway || status == http.StatusGatewayTimeout {
		return task.Errorf(kind, "whoever stands before the agent does not reach it (HTTP %d, %s)", status, media).WithCause(errors.Join(errPassing, err))
	}
	var e *task.Error
	if errors.As(err, &e) && e.Detail != "" {
		cause := e.Err
		if status == http.StatusInternalServerError || status == http.StatusNotImplemented {
			cause = errors.Join(errFault, cause)
		}
		return task.Errorf(kind, "%s (HTTP %d, %s)", strings.TrimSuffix(e.Detail, "."), status, media).WithCause(cause)
	}
	return fmt.Errorf("HTTP %d, %s: %w", status, media, err)
}
