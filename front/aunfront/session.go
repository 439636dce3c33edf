// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/task"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// Session is a client's connection. The exported fields are set when it has logged in.
type Session struct {
	AID    string
	Device string // empty if the client has named none
	Slot   string
	Peer   identity.Peer

	front   *Front
	conn    *aun.Conn
	mode    mode
	address string
	origin  string // charged for the session until it logs in
	host    string
	tls     bool
	access  *slog.Logger // of calls; nil for none
	began   time.Time
	// These are set before the client is logged in.
	ttl   time.Duration   // of a short connection; 0 for a long one
	extra json.RawMessage // the client's self-description, for a client kicked out; nil for nothing

	// Of a stranger; guarded by the mutex of the Connections.
	stranger *list.Element
	memory   limit.Lease

	steps sync.Mutex     // held during a step of the login in peer mode
	peer  *aun.PeerLogin // of peer mode

	ctx    context.Context // ends with the connection
	cancel context.CancelCauseFunc
	login  *time.Timer
	alive  *time.Timer

	calls    atomic.Int32 // being answered
	lastCall atomic.Int64 // when the last one was, in Unix nanoseconds

	mu      sync.Mutex
	nonce   string // of the challenge; empty once it is used
	ready   bool   // the client has logged in
	proof   aun.Proof
	ends    *time.Timer              // ends the session with its proof; nil before the login
	refused error                    // the reason why the proof is invalid; nil while it is valid
	idle    *time.Timer              // of a short connection
	subs    map[string]*subscription // by task
	over    bool                     // no more events of tasks are sent
	acks    acks
	pending []*notice // waiting to be sent
	size    int       // bytes of the pending ones that cannot be read again
	sending bool      // a goroutine sends them

	taken chan struct{} // has a value after pending was taken to be sent
}

func newSession(f *Front, ws *websocket.Conn, m mode, r *http.Request) *Session {
	s := &Session{front: f, mode: m, address: r.RemoteAddr, host: r.Host, tls: r.TLS != nil, began: time.Now(),
		subs: make(map[string]*subscription), taken: make(chan struct{}, 1)}
	s.origin, s.memory = f.originOf(r), f.config.Memory.Lease(limit.Strangers)
	if f.config.AccessLog != nil {
		s.access = f.config.AccessLog(r)
	}
	s.conn = aun.NewConn(ws, s, aun.Limits{Requests: f.config.Limits.Calls, Stranger: true}, f.config.Log)
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
	s.stopIdle()
	s.stopProof()
	// Until its positions are stored, a newer connection of the device must find this one.
	s.cutSubscriptions()
	s.stopAcks()
	f.config.Connections.drop(s)
	s.dropPending()
	f.config.Log.Debug("a connection has ended", "aid", s.AID, "address", s.address, "reason", why)
}

// serving returns the front whose agents take the calls of the client: the front of the configuration in force, since
// its rules decide about calls, and not those from the time of the client's connecting.
func (s *Session) serving() *Front {
	f := s.front.config.Connections.inForce.Load()
	if f == nil || f.config.Index != s.front.config.Index {
		return s.front // until drain
	}
	return f
}

// isServed reports whether the configuration in force has the client's tasks, knows it as the same Leader, and lets it
// go on with its subscriptions.
func (s *Session) isServed() bool {
	f := s.front.config.Connections.inForce.Load()
	if f == s.front {
		return true
	}
	if f == nil || f != s.serving() || f.config.Identities.Of(s.identity()).Leader() != s.Peer.Leader() {
		return false
	}
	return !slices.ContainsFunc(s.followed(), func(aid string) bool {
		a := f.agents[aid]
		return a == nil || a.Worker != s.AID && !a.Gateway.Admits(codec.Name, s.Peer) ||
			s.isDenied(a, codec.Subscribe, task.ReStream)
	})
}

// drain closes the connection at a random time, or at once if the configuration in force does not accept or serve the
// client any more.
func (s *Session) drain() {
	if s.loggedIn() && s.checkProof() != nil {
		return
	}
	wait := s.front.drainAfter()
	if s.loggedIn() && !s.isServed() {
		wait = 0
	}
	after := time.AfterFunc(wait, func() { s.leave(s.front.drained()) })
	context.AfterFunc(s.ctx, func() { after.Stop() })
}

// checkLogin closes a connection without a login.
func (s *Session) checkLogin() {
	s.mu.Lock()
	ready := s.ready
	s.mu.Unlock()
	if !ready {
		s.conn.Close(aun.CloseAuthTimeout, "the login took too long")
	}
}

// checkAlive pings a silent client, and ends the connection if it does not answer.
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

// disconnect informs the client of the reason for closing the connection, with details beside its own names, and closes
// it.
func (s *Session) disconnect(code aun.CloseCode, reason string, detail map[string]any) {
	all := map[string]any{"aid": s.AID, "device_id": s.Device, "slot_id": s.Slot}
	maps.Copy(all, detail)
	ctx, done := context.WithTimeout(s.ctx, pingTimeout)
	defer done()
	_ = s.conn.Notify(ctx, "event/gateway.disconnect",
		mustJSON(map[string]any{"code": code, "reason": reason, "detail": all}))
	s.conn.Close(code, reason)
}

// leave ends the subscriptions, and cuts the connection when the client has read everything sent to it. There is no
// close of WebSocket, whatever its status would be: SDKs of AUN take a cut for a fault of the network, and come back
// soonest after one. After a close they stay away for 15 s more, or for good.
func (s *Session) leave(why error) {
	s.cutSubscriptions()
	s.awaitAcks()
	s.conn.Cut(why)
}

// replace ends a session if its device has a newer connection. When it returns, no more events of tasks are sent to the
// client, and its positions are stored.
func (s *Session) replace(by *Session) {
	s.cutSubscriptions()
	s.stopAcks()
	detail := map[string]any{"quota_kind": "aid_device_slot", "limit": 1,
		"evicted_by": map[string]any{"aid": s.AID, "device_id": by.Device, "slot_id": by.Slot}}
	for name, extra := range map[string]json.RawMessage{"self_extra_info": s.extra, "new_extra_info": by.extra} {
		if len(extra) > 0 {
			detail[name] = extra
		}
	}
	s.front.work.Go(func() {
		s.disconnect(aun.CloseReplaced, "a newer connection of this device and slot has logged in", detail)
	})
}

func (s *Session) slotKey() string { return slotPrefix(s.Slot) }

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

// standing returns an error for a client after the end of its login.
func (s *Session) standing() error {
	s.mu.Lock()
	refused, late := s.refused, s.ready && !time.Now().Before(s.proof.Expires)
	s.mu.Unlock()
	if late {
		return s.checkProof()
	}
	return refused
}

func (s *Session) loggedIn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}
