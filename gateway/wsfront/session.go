// SPDX-License-Identifier: Apache-2.0

package wsfront

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/task"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// Session is a client's connection. The exported fields are set when it has logged in.
type Session struct {
	AID    string
	Device string // empty where the client has named none
	Slot   string
	Peer   identity.Peer

	front   *Front
	conn    *aun.Conn
	mode    mode
	address string
	host    string
	tls     bool
	access  *slog.Logger // of calls; nil for none
	began   time.Time
	steps   sync.Mutex     // held during a step of the login in peer mode
	peer    *aun.PeerLogin // of peer mode

	ctx    context.Context // ends with the connection
	cancel context.CancelCauseFunc
	login  *time.Timer
	alive  *time.Timer

	mu      sync.Mutex
	nonce   string // of the challenge; empty once it is used
	ready   bool   // the client has logged in
	short   bool
	subs    map[string]*subscription // by task
	over    bool                     // no more events of tasks are sent
	acks    acks
	pending [][]byte // notifications that wait to be sent
	size    int      // bytes of pending
	sending bool     // a goroutine sends them

	taken chan struct{} // has a value after pending was taken to be sent
}

// How many notifications, and bytes of them, may wait for a client that does not read.
const (
	maxPending      = 1000
	maxPendingBytes = 16 << 20
)

func newSession(f *Front, ws *websocket.Conn, m mode, r *http.Request) *Session {
	s := &Session{front: f, mode: m, address: r.RemoteAddr, host: r.Host, tls: r.TLS != nil, began: time.Now(),
		subs: make(map[string]*subscription), taken: make(chan struct{}, 1)}
	if f.config.AccessLog != nil {
		s.access = f.config.AccessLog(r)
	}
	s.conn = aun.NewConn(ws, s, aun.Limits{Requests: f.config.Limits.Calls}, f.config.Log)
	s.conn.CountBy(&f.config.Connections.Frames)
	return s
}

// serve serves the connection until it ends.
func (s *Session) serve() {
	f := s.front
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	stop := context.AfterFunc(f.config.Drain, s.drain)
	s.login = time.AfterFunc(loginTimeout, s.checkLogin)
	s.alive = time.AfterFunc(silence, s.checkAlive)
	if s.mode == gatewayMode {
		nonce, params := f.config.Authority.NewChallenge()
		s.nonce = nonce
		f.work.Go(func() { _ = s.conn.Notify(s.ctx, "challenge", params) })
	} else {
		s.peer = aun.NewPeerLogin(f.config.Identity, f.config.Roots)
	}
	why := s.conn.Serve(context.Background())
	s.cancel(why)
	stop()
	s.login.Stop()
	s.alive.Stop()
	// Until its positions are stored, a newer connection of the device must find this one.
	s.cutSubscriptions()
	s.stopAcks()
	f.config.Connections.drop(s)
	f.config.Log.Debug("a connection has ended", "aid", s.AID, "address", s.address, "reason", why)
}

// drain closes the connection at a random time.
func (s *Session) drain() {
	after := time.AfterFunc(s.front.drainAfter(), func() {
		code, reason := s.front.drainCode()
		s.close(code, reason)
	})
	context.AfterFunc(s.ctx, func() { after.Stop() })
}

// checkLogin closes a connection that has not logged in.
func (s *Session) checkLogin() {
	s.mu.Lock()
	ready := s.ready
	s.mu.Unlock()
	if !ready {
		s.conn.Close(aun.CloseAuthTimeout, "the login took too long")
	}
}

// checkAlive pings a client that has been silent, and ends the connection if it does not answer.
func (s *Session) checkAlive() {
	if s.ctx.Err() != nil {
		return
	}
	if quiet := time.Since(s.conn.LastReceived()); quiet < silence {
		s.alive.Reset(silence - quiet)
		return
	}
	ctx, done := context.WithTimeout(s.ctx, pingTimeout)
	defer done()
	if err := s.conn.Ping(ctx); err != nil {
		s.conn.Cut(errors.New("the client is silent"))
		return
	}
	s.alive.Reset(silence)
}

// disconnect informs the client why the connection is closed, and closes it.
func (s *Session) disconnect(code aun.CloseCode, reason string) {
	params := task.AppendString([]byte(`{"code":`+strconv.Itoa(int(code))+`,"reason":`), reason)
	ctx, done := context.WithTimeout(s.ctx, pingTimeout)
	defer done()
	_ = s.conn.Notify(ctx, "event/gateway.disconnect", append(params, '}'))
	s.conn.Close(code, reason)
}

// close ends the subscriptions, and closes the connection when the client has read their events.
func (s *Session) close(code aun.CloseCode, reason string) {
	s.cutSubscriptions()
	s.settleAcks()
	s.conn.Close(code, reason)
}

// replace ends a session whose device has a newer connection. When it returns, no more events of tasks are sent to the
// client, and its positions are stored.
func (s *Session) replace() {
	s.cutSubscriptions()
	s.stopAcks()
	s.front.work.Go(func() { s.disconnect(aun.CloseReplaced, "a newer connection of this device and slot has logged in") })
}

func (s *Session) slotKey() string { return slotPrefix(s.Slot) }

// Notify sends a notification to the client. It does not wait: a connection that does not take its notifications is
// closed.
func (s *Session) Notify(method string, params []byte) {
	frame := append(codec.BeginEvent(nil, method), params...)
	s.send(append(frame, '}'))
}

// send adds a frame to the frames that wait to be sent.
func (s *Session) send(frame []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	if len(s.pending) >= maxPending || s.size+len(frame) > maxPendingBytes {
		s.front.work.Go(func() { s.conn.Close(aun.CloseTryLater, "the client does not take its notifications") })
		return
	}
	s.pending, s.size = append(s.pending, frame), s.size+len(frame)
	if !s.sending {
		s.sending = true
		s.front.work.Go(s.sendPending)
	}
}

// sendOfMany is send for one of many frames: it waits while half of what may wait does so, until ctx ends.
func (s *Session) sendOfMany(ctx context.Context, frame []byte) {
	s.send(frame)
	for s.crowded() {
		select {
		case <-s.taken:
		case <-ctx.Done():
			return
		}
	}
}

// crowded reports whether half of the notifications that may wait do so.
func (s *Session) crowded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending) >= maxPending/2 || s.size >= maxPendingBytes/2
}

// sendPending sends the notifications that wait.
func (s *Session) sendPending() {
	for {
		s.mu.Lock()
		list := s.pending
		if s.pending, s.size = nil, 0; len(list) == 0 {
			s.sending = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		select {
		case s.taken <- struct{}{}:
		default:
		}
		for _, frame := range list {
			if s.conn.Send(s.ctx, frame) != nil {
				return
			}
		}
	}
}

// Event implements aun.Handler.
func (s *Session) Event(_ *aun.Conn, method string, params gjson.Result) {
	if !s.loggedIn() {
		return
	}
	if strings.HasPrefix(method, codec.EventPrefix) {
		s.reported(method, params)
		return
	}
	if service, ok := s.front.service(method).(EventService); ok {
		service.Event(s, method, params)
	}
}

func (s *Session) loggedIn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}
