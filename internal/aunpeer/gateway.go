// SPDX-License-Identifier: Apache-2.0

package aunpeer

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Fault is the fault of a call.
type Fault int

// The faults.
const (
	None      Fault = iota
	Ignore          // the call is neither carried out nor answered
	DropReply       // the call is carried out and not answered
	Cut             // the call is carried out, and the connection is cut before the answer
)

// Gateway is a gateway of AUN with one agent behind it, and the agent carries out scripts. It is an http.Handler for
// discovery, /health, /pki/… and the WebSocket /aun. Its fields are set before it serves.
type Gateway struct {
	PKI       *PKI
	ID        *Identity // its certificate signs in aid_login1
	Agent     string    // the AID of the agent
	URL       string    // of its WebSocket, for discovery
	Messages  bool      // the agent has no task.*: it is spoken to by messages
	Encrypts  bool      // the agent's messages are encrypted
	Quiet     bool      // the agent does not report its start
	Marks     bool      // a question of the agent is a status, input_required
	TokenTime time.Duration
	// Rule is the agent's reaction to a message, in place of its scripts: it says payloads. nil for the scripts.
	Rule  func(message Received, say func(payload map[string]any))
	Fault func(method string, params json.RawMessage) Fault // nil for none

	mu       sync.Mutex
	logins   map[string]*login // by request_id
	tokens   map[string]token  // access tokens and refresh tokens
	sessions map[*session]bool
	calls    []string
	tasks    tasks
	threads  map[string]chan string // of conversations in messages: the answers to a question
	inbox    []delivery             // of all clients, by seq
	texts    []string               // received by an agent with a Rule
	taken    map[string]bool        // the ids of messages to the agent
	running  sync.WaitGroup
	closed   context.Context
	close    context.CancelFunc
	seq      int
}

type login struct {
	nonce string
	cert  string
	aid   string
}

type token struct {
	aid     string
	until   time.Time
	refresh bool
}

// session is one connection of a client.
type session struct {
	*Conn
	gateway       *Gateway
	nonce         string
	mu            sync.Mutex
	aid           string // once it is authenticated
	subscriptions map[string]bool
}

// Open makes the gateway ready to serve.
func (g *Gateway) Open() {
	g.logins, g.tokens = make(map[string]*login), make(map[string]token)
	g.sessions, g.threads = make(map[*session]bool), make(map[string]chan string)
	g.tasks.byID = make(map[string]*work)
	g.taken = make(map[string]bool)
	g.closed, g.close = context.WithCancel(context.Background())
}

// Close ends all connections and scripts, and waits for them.
func (g *Gateway) Close() {
	g.close()
	g.CutAll()
	g.running.Wait()
}

// CutAll cuts all connections without a word.
func (g *Gateway) CutAll() {
	for _, s := range g.open() {
		s.Cut()
	}
}

// Disconnect closes all connections with a close code.
func (g *Gateway) Disconnect(code int, reason string) {
	for _, s := range g.open() {
		_ = s.ws.Close(websocket.StatusCode(code), reason)
	}
}

func (g *Gateway) open() (list []*session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for s := range g.sessions {
		list = append(list, s)
	}
	return list
}

// Calls returns the called methods, in order.
func (g *Gateway) Calls() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.calls)
}

// Connections returns the number of authenticated connections.
func (g *Gateway) Connections() (n int) {
	for _, s := range g.open() {
		if s.caller() != "" {
			n++
		}
	}
	return n
}

func (s *session) caller() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.aid
}

func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/.well-known/aun-gateway":
		_ = json.NewEncoder(w).Encode(map[string]any{"gateways": []any{
			map[string]any{"url": "wss://elsewhere.invalid/aun", "priority": 2},
			map[string]any{"url": g.URL, "priority": 1},
		}})
	case r.URL.Path == "/health":
		w.WriteHeader(http.StatusOK)
	case r.URL.Path == "/pki/chain":
		_, _ = w.Write([]byte(g.PKI.Issuer.ChainPEM()))
	case r.URL.Path == "/aun":
		g.serve(w, r)
	default:
		http.NotFound(w, r)
	}
}

// serve serves one connection to its end.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return
	}
	g.running.Add(1)
	defer g.running.Done()
	s := &session{gateway: g, nonce: rand.Text(), subscriptions: make(map[string]bool)}
	s.Conn = newConn(ws, s.answer)
	g.mu.Lock()
	g.sessions[s] = true
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.sessions, s)
	}()
	_ = s.Notify(g.closed, "challenge", map[string]any{
		"nonce": s.nonce, "server": "aunpeer", "protocol": map[string]any{"min": "1.0", "max": "1.0"},
		"auth_methods": []string{"kite_token", "aid"}, "server_time": time.Now().Unix(),
	})
	s.read(g.closed)
	_ = ws.CloseNow()
}

// answer carries out a request.
func (s *session) answer(f Frame) (any, *Error) {
	g := s.gateway
	g.mu.Lock()
	g.calls = append(g.calls, f.Method)
	g.mu.Unlock()
	fault := None
	if g.Fault != nil {
		fault = g.Fault(f.Method, f.Params)
	}
	if fault == Ignore {
		return nil, errSilent
	}
	result, failed := s.carryOut(f)
	switch fault {
	case Cut:
		_ = s.ws.CloseNow()
		return nil, errSilent
	case DropReply:
		return nil, errSilent
	}
	return result, failed
}

func (s *session) carryOut(f Frame) (any, *Error) {
	switch f.Method {
	case "auth.aid_login1":
		return s.gateway.login1(f.Params)
	case "auth.aid_login2":
		return s.gateway.login2(f.Params)
	case "auth.refresh_token":
		return s.gateway.refresh(f.Params)
	case "auth.connect":
		return s.connect(f.Params)
	}
	aid := s.caller()
	if aid == "" {
		return nil, &Error{Code: -32001, Message: "not authenticated"}
	}
	switch namespace, _, _ := strings.Cut(f.Method, "."); {
	case f.Method == "meta.ping":
		return map[string]any{"pong": true, "timestamp": time.Now().UnixMilli()}, nil
	case namespace == "task" && !s.gateway.Messages:
		return s.task(aid, f)
	case f.Method == "message.send":
		return s.gateway.message(aid, f.Params)
	case f.Method == "message.pull":
		return s.gateway.pull(aid, f.Params)
	}
	return nil, &Error{Code: -32601, Message: "method not found"}
}

// connect authenticates the connection.
func (s *session) connect(params json.RawMessage) (any, *Error) {
	var p struct {
		Nonce string
		Auth  struct{ Method, Token string }
	}
	if json.Unmarshal(params, &p) != nil || p.Nonce != s.nonce {
		return nil, &Error{Code: 4010, Message: "nonce"}
	}
	g := s.gateway
	g.mu.Lock()
	t, ok := g.tokens[p.Auth.Token]
	g.mu.Unlock()
	switch {
	case !ok || t.refresh || p.Auth.Method != "kite_token":
		return nil, &Error{Code: -32001, Message: "auth failed"}
	case time.Now().After(t.until):
		return nil, &Error{Code: -32005, Message: "token expired"}
	}
	s.mu.Lock()
	s.aid = t.aid
	s.mu.Unlock()
	namespaces := []string{"auth", "meta", "message"}
	if !g.Messages {
		namespaces = append(namespaces, "task")
	}
	return map[string]any{
		"status": "ok", "protocol": "1.0", "authenticated": true, "server_time": time.Now().Unix(),
		"identity":     map[string]any{"aid": t.aid, "role": "user", "module_id": ""},
		"connection":   map[string]any{"id": rand.Text(), "device_id": "", "kind": "long"},
		"trust_level":  "aid",
		"capabilities": map[string]any{"namespaces": namespaces, "features": map[string]any{}},
	}, nil
}

func (g *Gateway) login1(params json.RawMessage) (any, *Error) {
	var p struct {
		AID         string
		Cert        string
		ClientNonce string `json:"client_nonce"`
	}
	if err := json.Unmarshal(params, &p); err != nil || p.AID == "" || p.ClientNonce == "" {
		return nil, &Error{Code: -32602, Message: "params"}
	}
	if _, err := g.PKI.check(p.Cert, p.AID, g.PKI.Issuer.Chain...); err != nil {
		return nil, &Error{Code: -32002, Message: err.Error()}
	}
	signature, err := g.ID.Sign(p.ClientNonce)
	if err != nil {
		return nil, &Error{Code: -32603, Message: err.Error()}
	}
	id, nonce := rand.Text(), rand.Text()
	g.mu.Lock()
	g.logins[id] = &login{nonce: nonce, cert: p.Cert, aid: p.AID}
	g.mu.Unlock()
	return map[string]any{
		"request_id": id, "nonce": nonce, "server_time": time.Now().Unix(),
		"client_nonce_signature": signature, "auth_cert": g.ID.CertPEM(), "auth_curve": "P-256",
	}, nil
}

func (g *Gateway) login2(params json.RawMessage) (any, *Error) {
	var p struct {
		AID        string
		RequestID  string `json:"request_id"`
		Nonce      string
		ClientTime string `json:"client_time"`
		Signature  string
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &Error{Code: -32602, Message: err.Error()}
	}
	g.mu.Lock()
	l, ok := g.logins[p.RequestID]
	delete(g.logins, p.RequestID)
	g.mu.Unlock()
	if !ok || l.aid != p.AID || l.nonce != p.Nonce {
		return nil, &Error{Code: -32002, Message: "nonce"}
	}
	certs, err := parseCerts(l.cert)
	if err == nil {
		err = verify(certs[0], p.Nonce+":"+p.ClientTime, p.Signature)
	}
	if err != nil {
		return nil, &Error{Code: -32003, Message: err.Error()}
	}
	return g.newTokens(p.AID), nil
}

func (g *Gateway) refresh(params json.RawMessage) (any, *Error) {
	var p struct {
		Token string `json:"refresh_token"`
	}
	_ = json.Unmarshal(params, &p)
	g.mu.Lock()
	t, ok := g.tokens[p.Token]
	delete(g.tokens, p.Token)
	g.mu.Unlock()
	if !ok || !t.refresh {
		return map[string]any{"success": false, "relogin_required": true}, nil
	}
	return g.newTokens(t.aid), nil
}

// newTokens makes an access token and a refresh token.
func (g *Gateway) newTokens(aid string) map[string]any {
	lasts := g.TokenTime
	if lasts == 0 {
		lasts = time.Hour
	}
	access, refresh := rand.Text(), rand.Text()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tokens[access] = token{aid: aid, until: time.Now().Add(lasts)}
	g.tokens[refresh] = token{aid: aid, refresh: true}
	return map[string]any{
		"success": true, "access_token": access, "refresh_token": refresh, "expires_in": int(lasts.Seconds()),
	}
}
