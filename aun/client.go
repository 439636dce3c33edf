// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun/codes"
)

// Times of a Client.
const (
	dialTimeout      = 10 * time.Second // of a connection, TLS included
	loginTimeout     = 30 * time.Second // from the connection to the session
	defaultHeartbeat = 30 * time.Second
	pingTimeout      = 10 * time.Second

	backoffFirst = 250 * time.Millisecond
	backoffMost  = 10 * time.Second
	// backoffFinal follows a close asking the client not to come back: an operator may have changed something.
	backoffFinal = time.Minute
)

// ClientConfig names the other end of a Client's connection, and the identity of this end. Identity, Roots and one of
// URL and Peer are required.
type ClientConfig struct {
	Identity *Identity // our own; it has a certificate
	Roots    *Roots    // of the other end

	// URL is the gateway's or, if its path ends with /acp, the peer's. Default: found out for Peer.
	URL  string
	Peer AID // whose gateway is found by discovery, or that a peer must have

	Device, Slot string       // distinguish connections of one AID
	HTTP         *http.Client // for discovery and for the connection; default: http.DefaultClient without redirects
	Limits       Limits
	Frames       *Frames      // counts the frames; default: nothing does
	Log          *slog.Logger // default: slog.Default

	// Event receives the notifications of the other end, as Handler.Event does; nil for none.
	Event func(c *Conn, method string, params gjson.Result)
}

// SameTrust reports whether two configurations present the same certificates and accept the same ones, in AUN and in
// TLS, so they may share a connection.
func (c *ClientConfig) SameTrust(other *ClientConfig) bool {
	if !c.Roots.Equal(other.Roots) ||
		!slices.EqualFunc(c.Identity.Chain, other.Identity.Chain, (*x509.Certificate).Equal) {
		return false
	}
	a, b := c.tls(), other.tls()
	if a == nil || b == nil {
		return a == b
	}
	return a.ServerName == b.ServerName && a.RootCAs.Equal(b.RootCAs) &&
		slices.EqualFunc(a.Certificates, b.Certificates, func(x, y tls.Certificate) bool {
			return slices.EqualFunc(x.Certificate, y.Certificate, bytes.Equal)
		})
}

// tls returns the settings of TLS; nil for Go's defaults.
func (c *ClientConfig) tls() *tls.Config {
	if c.HTTP == nil {
		return nil
	}
	if t, ok := c.HTTP.Transport.(*http.Transport); ok {
		return t.TLSClientConfig
	}
	return nil
}

// Session is a connection with a logged-in client.
type Session struct {
	*Conn
	Hello Hello
}

// Client keeps one connection to a gateway or a peer: it logs in, pings, refreshes its token, and connects again when
// the connection is lost. Its methods may be called by any number of goroutines at once.
type Client struct {
	config ClientConfig
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	started bool
	session *Session
	changed chan struct{} // closed, and replaced, when session or failed changes
	failed  error         // the error of the last attempt to connect; nil after a success
	begun   uint64        // attempts begun
	ended   uint64        // the number of the last attempt that has failed or made a session

	tokens Tokens // of the connecting goroutine
}

// NewClient returns a client. It connects when it is first used.
func NewClient(config ClientConfig) *Client {
	if config.Log == nil {
		config.Log = slog.Default()
	}
	if config.HTTP == nil {
		config.HTTP = &http.Client{}
	}
	following := *config.HTTP
	following.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	config.HTTP = &following
	c := &Client{config: config, changed: make(chan struct{})}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// Close closes the connection, and waits for everything started by the client.
func (c *Client) Close() {
	c.mu.Lock()
	session := c.session
	c.started = true // so nothing starts any more
	c.mu.Unlock()
	if session != nil {
		session.Close(CloseGoingAway, "")
	}
	c.stop()
	c.work.Wait()
}

// Session returns the current session. Without one it waits for a session, for the failure of an attempt to connect
// begun after the call, or for the end of ctx.
func (c *Client) Session(ctx context.Context) (*Session, error) {
	c.mu.Lock()
	if !c.started {
		c.started = true
		c.work.Go(c.keep)
	}
	before := c.begun // an attempt under way has not seen changes since its begin
	for {
		session, changed, failed := c.session, c.changed, c.failed
		enough := c.ended > before && failed != nil
		c.mu.Unlock()
		switch {
		case session != nil:
			return session, nil
		case enough:
			return nil, failed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, cmp.Or(failed, context.Cause(ctx))
		case <-c.ctx.Done():
			return nil, errors.New("aun: the client is closed")
		}
		c.mu.Lock()
	}
}

// Connected reports whether there is a session now.
func (c *Client) Connected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session != nil
}

// begin counts an attempt to connect.
func (c *Client) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun++
}

// set records the session, or the reason for none: the end of the last attempt, or of its session.
func (c *Client) set(s *Session, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.failed, c.ended = s, err, c.begun
	close(c.changed)
	c.changed = make(chan struct{})
}

// keep connects, again and again, until the client is closed.
func (c *Client) keep() {
	wait := backoffFirst
	for c.ctx.Err() == nil {
		began := time.Now()
		served, err := c.connect()
		if c.ctx.Err() != nil {
			return
		}
		if served && time.Since(began) > backoffMost {
			wait = backoffFirst
		}
		c.config.Log.LogAttrs(c.ctx, slog.LevelWarn, "the AUN connection is lost; connecting again",
			slog.String("aid", string(c.config.Identity.AID)), slog.String("to", c.target()), slog.Any("error", err))
		pause := wait - wait/4 + rand.N(wait/2+1)
		if closed, ok := errors.AsType[*CloseError](err); ok && closed.Final() && !closed.Local {
			pause = backoffFinal
		}
		wait = min(2*wait, backoffMost)
		select {
		case <-time.After(pause):
		case <-c.ctx.Done():
		}
	}
}

// target names the other end in log lines.
func (c *Client) target() string { return cmp.Or(c.config.URL, string(c.config.Peer)) }

// connect opens a connection, logs in, and serves it to its end. served is true if there was a session.
func (c *Client) connect() (served bool, err error) {
	c.begin()
	defer func() {
		if !served {
			c.set(nil, err)
		}
	}()
	ctx, cancel := context.WithTimeout(c.ctx, loginTimeout)
	defer cancel()
	ws, at, err := c.dial(ctx)
	if err != nil {
		return false, err
	}
	in := &incoming{event: c.config.Event, challenge: make(chan string, 1)}
	conn := NewConn(ws, in, c.config.Limits, c.config.Log)
	conn.CountBy(c.config.Frames)
	ended := make(chan *CloseError, 1)
	c.work.Go(func() { ended <- conn.Serve(c.ctx) })
	hello, ends, err := c.login(ctx, conn, in.challenge, at)
	if err != nil {
		if closed := conn.Err(); closed != nil {
			err = fmt.Errorf("%w: %w", closed, err)
		}
		conn.Close(CloseNormal, "")
		<-ended
		return false, err
	}
	cancel()
	c.set(&Session{Conn: conn, Hello: *hello}, nil)
	c.config.Log.LogAttrs(c.ctx, slog.LevelInfo, "connected to AUN",
		slog.String("aid", string(c.config.Identity.AID)), slog.String("to", c.target()))
	c.maintain(conn, hello, ends)
	closed := <-ended
	c.set(nil, nil)
	return true, closed
}

// dial opens a connection, and returns its URL.
func (c *Client) dial(ctx context.Context) (ws *websocket.Conn, at *url.URL, failed error) {
	urls := []string{c.config.URL}
	if c.config.URL == "" {
		var err error
		if urls, err = Discover(ctx, c.config.HTTP, c.config.Peer); err != nil {
			return nil, nil, fmt.Errorf("aun: no gateway of %s was found: %w", c.config.Peer, err)
		}
	}
	for _, address := range urls {
		at, err := url.Parse(address)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		dialing, cancel := context.WithTimeout(ctx, dialTimeout)
		ws, res, err := websocket.Dial(dialing, address, &websocket.DialOptions{HTTPClient: c.config.HTTP})
		cancel()
		if res != nil && res.Body != nil {
			_ = res.Body.Close()
		}
		if err == nil {
			return ws, at, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, nil, failed
}

// peerMode reports whether a URL is a peer's, and not a gateway's.
func peerMode(at *url.URL) bool { return strings.HasSuffix(at.Path, "/acp") }

// login makes a session of a connection to a URL. ends is the expiry of the certificate by which a peer has proven its
// identity; zero for a gateway.
func (c *Client) login(
	ctx context.Context, conn *Conn, challenge <-chan string, at *url.URL,
) (hello *Hello, ends time.Time, err error) {
	id, roots := c.config.Identity, c.config.Roots
	if peerMode(at) {
		proof, err := ConnectPeer(ctx, conn, id, roots, c.config.Peer)
		return &Hello{}, proof.Expires, err
	}
	var nonce string
	select {
	case nonce = <-challenge:
	case <-conn.Done():
		return nil, ends, conn.Err()
	case <-ctx.Done():
		return nil, ends, errors.New("aun: the gateway has sent no challenge")
	}
	if c.tokens.Access == "" || !c.tokens.Expires.IsZero() && time.Until(c.tokens.Expires) < pingTimeout {
		issuers := func(ctx context.Context) ([]*x509.Certificate, error) { return issuersOf(ctx, c.config.HTTP, at) }
		if c.tokens, err = Login(ctx, conn, id, roots, issuers); err != nil {
			return nil, ends, err
		}
	}
	hello, err = Connect(ctx, conn, nonce, c.tokens, c.config.Device, c.config.Slot)
	if _, refused := errors.AsType[*Error](err); refused {
		c.tokens = Tokens{} // the next attempt logs in
	}
	return hello, ends, err
}

// maintain pings, and refreshes the token, until the connection ends, or the peer's certificate does.
func (c *Client) maintain(conn *Conn, hello *Hello, ends time.Time) {
	peer := !ends.IsZero()
	var ended <-chan time.Time
	if peer {
		ended = time.After(time.Until(ends))
	}
	heartbeat := cmp.Or(hello.Heartbeat, defaultHeartbeat)
	ping := time.NewTimer(heartbeat)
	defer ping.Stop()
	var refresh <-chan time.Time
	begin := func() {
		if left := time.Until(c.tokens.Expires); !peer && c.tokens.Refresh != "" && !c.tokens.Expires.IsZero() {
			refresh = time.After(max(left*4/5, time.Second))
		}
	}
	begin()
	for {
		select {
		case <-conn.Done():
			return
		case <-ended:
			conn.Close(CloseAuthFailed, "the certificate of the peer has expired")
			return
		case <-ping.C:
			began := time.Now()
			ctx, cancel := context.WithTimeout(c.ctx, pingTimeout)
			result, err := conn.Call(ctx, "meta.ping", []byte("{}"))
			cancel()
			if lost, ok := errors.AsType[*LostError](err); ok && !conn.LastReceived().After(began) {
				conn.cut(&CloseError{Code: CloseAbnormal, Local: true,
					Err: fmt.Errorf("no answer to a ping: %w", lost.Err)})
				return
			}
			heartbeat = cmp.Or(ReadHeartbeat(result), heartbeat)
			ping.Reset(heartbeat)
		case <-refresh:
			refresh = nil
			ctx, cancel := context.WithTimeout(c.ctx, loginTimeout)
			tokens, err := Refresh(ctx, conn, c.config.Identity, c.tokens)
			cancel()
			if err != nil {
				c.tokens = Tokens{} // the next connection logs in
				continue
			}
			c.tokens = tokens
			begin()
		}
	}
}

// incoming is the Handler of a client. A client has no methods.
type incoming struct {
	event     func(c *Conn, method string, params gjson.Result)
	challenge chan string // the nonce of the first challenge
}

// Request implements Handler.
func (*incoming) Request(_ context.Context, r *Request) {
	r.Fail(Errorf(codes.MethodNotFound, "Method not found"))
}

// Event implements Handler.
func (in *incoming) Event(c *Conn, method string, params gjson.Result) {
	if method == "challenge" {
		select {
		case in.challenge <- params.Get("nonce").String():
		default:
		}
		return
	}
	if in.event != nil {
		in.event(c, method, params)
	}
}
