// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// withContexts is an agent of A2A with its own names of contexts.
type withContexts struct {
	takes  func(context string) bool // reports whether it takes the context of a start; nil for all
	error  string                    // the answer to a start in another one
	answer func(context string) string

	mu    sync.Mutex
	asked []string // the contexts of messages
}

func (a *withContexts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	params, method := gjson.GetBytes(body, "params"), gjson.GetBytes(body, "method").Str
	if !params.Get("message").Exists() {
		io.WriteString(w, fails(-32001, "it knows no tasks"))
		return
	}
	session := params.Get("sessionId").Str + params.Get("message.contextId").Str
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, session)
	if session != "" && a.takes != nil && !a.takes(session) {
		io.WriteString(w, a.error)
		return
	}
	if a.answer != nil {
		session = a.answer(session)
	}
	result := fmt.Sprintf(`{"id":"t","contextId":%q,"sessionId":%[1]q,"status":{"state":"completed"}}`, session)
	if strings.HasPrefix(method, "Send") {
		result = `{"task":` + strings.Replace(result, "completed", "TASK_STATE_COMPLETED", 1) + `}`
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, gjson.GetBytes(body, "id").Raw, result)
}

// withSessions are the dialects with an agent free to name the session of a start.
var withSessions = map[string]translate.Client{"legacy": a2a.Legacy(), "0.3": a2a.V03(), "1.0": a2a.V1()}

// none takes no context but its own.
func none(context string) bool { return strings.HasPrefix(context, "own") }

// TestRefusedSession: an agent refusing the session of a start, and so doing nothing, is asked without it, once. From
// then on it names the sessions itself.
func TestRefusedSession(t *testing.T) {
	own := func(string) string { return "own" }
	for name, tc := range map[string]struct {
		error string
		takes func(string) bool
		given bool     // the agent has made the name in the start
		asked []string // of two starts
	}{
		"by its parameters": {fails(-32602, "client-provided contextId is not accepted"), none, false,
			[]string{"s", "", ""}},
		"as not supported": {fails(-32004, "sessions: context_id is unknown"), none, false, []string{"s", "", ""}},
		"one that it has made": {fails(-32602, "Context not found"), func(string) bool { return false }, true,
			[]string{"s", "", "s", ""}},
		"as a mistake of its own": {fails(-32603, "it failed for this contextId"), none, false, []string{"s", "s"}},
		"for another reason":      {fails(-32602, "the context window is too small"), none, false, []string{"s", "s"}},
	} {
		for dialect, codec := range withSessions {
			for _, stream := range []bool{false, true} {
				at := &withContexts{takes: tc.takes, error: tc.error, answer: own}
				change := func(s *settings) { s.Codec = codec }
				withAgent(t, at, change, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
					var last agent.Report
					for range 2 {
						start := turn("x")
						start.OwnSession = tc.given
						for rep, err := range carryOut(t.Context(), a, start, stream) {
							if last = rep; (err != nil) == (tc.asked[1] == "") {
								t.Errorf("%s, %s, stream %v: %v", name, dialect, stream, err)
							}
						}
					}
					want, asked := tc.asked, at.asked
					if stream || dialect != "legacy" { // a refused stream is asked for without one
						want, asked = slices.Compact(slices.Clone(want)), slices.Compact(asked)
					}
					if diff := cmp.Diff(want, asked); diff != "" {
						t.Errorf("%s, %s, stream %v: asked in these sessions (-want +got):\n%s", name, dialect, stream, diff)
					}
					if ref := last.Ref; tc.asked[1] == "" && (ref == nil || ref.Session != "own" || !last.OwnSession) {
						t.Errorf("%s, %s, stream %v: the names are %+v", name, dialect, stream, last)
					}
				})
			}
		}
	}
}

// TestRefusedMessage: if an agent refuses the message without the session, too, the session was not the reason.
func TestRefusedMessage(t *testing.T) {
	refuses := true
	at := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if refuses {
			io.WriteString(w, fails(-32602, "no contextId fits this message"))
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":{"id":"t","sessionId":%q,"status":{"state":"completed"}}}`,
			gjson.GetBytes(body, "params.sessionId").Str+"!")
	})
	withAgent(t, at, nil, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
		for _, err := range carryOut(t.Context(), a, turn("x"), false) {
			if upstream.ReasonOf(err) != upstream.Refused {
				t.Errorf("it is answered %v", err)
			}
		}
		refuses = false
		for rep, err := range carryOut(t.Context(), a, turn("x"), false) {
			if err != nil || rep.Ref == nil || rep.Ref.Session != "s!" {
				t.Errorf("the next start is answered %+v, %v", rep, err)
			}
		}
	})
}

// TestSessionOfAnotherLeader: an agent giving the sessions of two Leaders one name goes on with the first by it.
//
// Promise: an agent, or a proxy before it, mixes up its answers, so that a Leader is given the result of another one
func TestSessionOfAnotherLeader(t *testing.T) {
	for dialect, codec := range withSessions {
		for _, stream := range []bool{false, true} {
			at := &withContexts{answer: func(string) string { return "ours" }}
			change := func(s *settings) { s.Codec = codec }
			withAgent(t, at, change, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
				for i, of := range []struct {
					leader, session string
					given, own      bool
				}{{"ann", "ours", true, false}, {"bob", "s", false, false}, {"ann", "s", false, true}} {
					start := turn(fmt.Sprint(i))
					start.Leader, start.Ref.Session, start.OwnSession = of.leader, of.session, of.given
					own := false
					for rep, err := range carryOut(t.Context(), a, start, stream) {
						if own = own || rep.OwnSession; err != nil {
							t.Error(err)
						}
					}
					if own != of.own {
						t.Errorf("%s, stream %v: the name that %s gets is kept: %v", dialect, stream, of.leader, own)
					}
				}
			})
		}
	}
}

// TestSessionThatAnotherLeaderHasNow: a name made by the agent for the session of a Leader, and since then, after a
// restart, for another Leader's, is not sent for the first.
//
// Promise: an agent, or a proxy before it, mixes up its answers, so that a Leader is given the result of another one
func TestSessionThatAnotherLeaderHasNow(t *testing.T) {
	for dialect, codec := range withSessions {
		for _, stream := range []bool{false, true} {
			at := &withContexts{answer: func(string) string { return "1" }}
			change := func(s *settings) { s.Codec = codec }
			withAgent(t, at, change, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
				for i, of := range []struct {
					leader, session string
					given           bool
				}{{"bob", "s", false}, {"ann", "1", true}, {"bob", "1", true}} {
					start := turn(fmt.Sprint(i))
					start.Leader, start.Ref.Session, start.OwnSession = of.leader, of.session, of.given
					for rep, err := range carryOut(t.Context(), a, start, stream) {
						if err != nil || rep.OwnSession && of.leader == "ann" {
							t.Errorf("%s, stream %v: the name that %s gets is kept: %v (%v)", dialect, stream, of.leader,
								rep.OwnSession, err)
						}
					}
				}
				if want := []string{"s", "", "1"}; !slices.Equal(at.asked, want) {
					t.Errorf("%s, stream %v: the agent was asked in %q, want %q", dialect, stream, at.asked, want)
				}
			})
		}
	}
}
