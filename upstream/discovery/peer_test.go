// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream/upstreamtest"
)

// peer is an agent asked for its dialect. Anything not in it is answered by status 404 and no JSON.
type peer struct {
	cards map[string]string            // by path; HOST is for the agent's own address
	rpc   map[string]map[string]string // by path, then method: the member in answer, "*" for all other methods
	plain bool                         // methods not in rpc are answered by status 400, and not by JSON-RPC
	over  func(w http.ResponseWriter, r *http.Request) bool

	mu  sync.Mutex
	log []string // the requests: path, or path and method
}

func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	method := gjson.GetBytes(body, "method").Str
	p.mu.Lock()
	p.log = append(p.log, strings.TrimSpace(r.URL.RequestURI()+" "+method))
	p.mu.Unlock()
	if p.over != nil && p.over(w, r) {
		return
	}
	if card, ok := p.cards[r.URL.RequestURI()]; ok && r.Method == http.MethodGet {
		io.WriteString(w, strings.ReplaceAll(card, "HOST", r.Host))
		return
	}
	answers, ok := p.rpc[r.URL.Path]
	if !ok || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "<html>no such page</html>")
		return
	}
	answer, ok := answers[method]
	if !ok {
		answer = answers["*"]
	}
	if !ok && p.plain {
		http.Error(w, `{"error":"Invalid request","issues":[]}`, http.StatusBadRequest)
		return
	}
	if r.Header.Get("A2A-Version") == "1.0" != (method == "GetTask") {
		answer = `"error":{"code":-32009,"message":"wrong version"}`
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,%s}`, answer)
}

const (
	knownTask = `"error":{"code":-32001,"message":"no such task"}`
	broken    = `"error":{"code":-32603,"message":"failed"}`
	unknown   = `"error":{"code":-32601,"message":"Method not found"}`
	noWebhook = `"error":{"code":-32003,"message":"no push"}`
	invalid   = `"error":{"code":-32600,"message":"Request payload validation error"}`

	cardJSON  = "/.well-known/agent-card.json"
	agentJSON = "/.well-known/agent.json"
)

// Agents by their dialects.
var (
	speaks10 = map[string]string{"GetTask": knownTask, "*": unknown}
	speaks03 = map[string]string{"tasks/get": knownTask, "tasks/pushNotificationConfig/get": broken, "*": unknown}
	speaks02 = map[string]string{"tasks/get": knownTask, "tasks/pushNotificationConfig/get": noWebhook,
		"*": unknown}
	speaksLegacy  = map[string]string{"tasks/get": knownTask, "tasks/pushNotification/get": knownTask, "*": unknown}
	validates     = map[string]string{"tasks/get": knownTask, "tasks/pushNotification/get": knownTask, "*": invalid}
	ignoresMethod = map[string]string{"*": `"result":{"id":"x","status":{"state":"completed"}}`}
	noWebhooks    = map[string]string{"tasks/get": knownTask, "*": unknown}
)

const (
	legacyCard = `{"name":"l","url":"http://HOST/","version":"1","capabilities":{"streaming":true},"skills":[]}`
	card02     = `{"name":"js","url":"http://HOST/","version":"1","capabilities":{},"securitySchemes":{},"skills":[]}`
	card03     = `{"name":"g","url":"http://HOST/invoke","protocolVersion":"0.3.0","preferredTransport":"JSONRPC",` +
		`"version":"1","skills":[]}`
	card10 = `{"name":"t","version":"1","supportedInterfaces":[{"url":"http://HOST/rpc",` +
		`"protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`
	cardREST = `{"name":"t","version":"1","supportedInterfaces":[{"url":"http://HOST/rest/",` +
		`"protocolBinding":"HTTP+JSON","protocolVersion":"1.0"}]}`
	hybrid = `{"name":"h","version":"1","supportedInterfaces":[
		{"url":"http://HOST/invoke","protocolBinding":"JSONRPC","protocolVersion":"1.0"},
		{"url":"http://HOST/rest","protocolBinding":"HTTP+JSON","protocolVersion":"1.0"},
		{"url":"http://HOST/invoke03","protocolBinding":"JSONRPC","protocolVersion":"0.3"}],
		"url":"http://HOST/invoke03","protocolVersion":"0.3","preferredTransport":"JSONRPC"}`
	grpcCard = `{"name":"t","version":"1","supportedInterfaces":[{"url":"HOST","protocolBinding":"GRPC",` +
		`"protocolVersion":"1.0"}]}`
)

func only(path, card string) map[string]string { return map[string]string{path: card} }

func at1(path string, answers map[string]string) map[string]map[string]string {
	return map[string]map[string]string{path: answers}
}

// detailOf returns an error's words to a Leader.
func detailOf(err error) string {
	if e, ok := errors.AsType[*task.Error](err); ok {
		return e.Detail
	}
	return ""
}

// redirecting redirects posts to a path.
func redirecting(path, to string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || r.URL.Path != path {
			return false
		}
		http.Redirect(w, r, strings.ReplaceAll(to, "HOST", r.Host), http.StatusTemporaryRedirect)
		return true
	}
}

// answers answers every request alike.
func answers(status int, body string) *peer {
	return &peer{over: func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Location", "http://elsewhere.example/")
		w.WriteHeader(status)
		io.WriteString(w, body)
		return true
	}}
}

// slowly runs f in a bubble, with an agent served from memory.
func slowly(t *testing.T, handler http.Handler, f func(t *testing.T, config Config)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		m := upstreamtest.NewListener()
		srv := &http.Server{Handler: handler}
		var serving sync.WaitGroup
		serving.Go(func() { srv.Serve(m) })
		f(t, Config{URL: "http://agent", Finder: a2a.Finder(), Dial: m.Dial})
		srv.Close()
		serving.Wait()
	})
}
