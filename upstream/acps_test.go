// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/aip"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// acps is a Partner like those on the reference implementation of ACPs v1. It answers a continue with the unchanged
// task and acts on it later, answers a repeated start with the task as it is, and answers HTTP 500 to everything
// unreadable or unknown.
type acps struct {
	rpc, stream string        // the paths served; an empty stream is none
	works       time.Duration // the time of a turn
	cuts        bool          // it takes a continue, and then breaks the connection
	keeps       bool          // it keeps the messages of a task
	lost        int           // so many messages are lost on the way to it
	proxy       bool          // a proxy answers those by 502; else the connection breaks
	registers   time.Duration // the time from a start until the task is known; then the connection of the start breaks

	serving sync.WaitGroup // of connections to be closed

	mu    sync.Mutex
	tasks map[string]*acpsTask
	asked []string // path, and command if the request is understood
}

type acpsTask struct {
	state   task.State
	since   time.Time
	product string
	due     time.Time // when the turn under way ends; zero for none
	next    string    // its product
	known   time.Time // when the task is known; zero for always
	history []string  // its messages
}

func (a *acps) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if a.answer(w, r, body) {
		a.serving.Add(1)
		defer a.serving.Done()
		fail(w)
	}
}

// fail answers as uvicorn does for a failing application: HTTP 500, without a word of the connection, and a moment
// later the connection is closed. Anything sent on it meanwhile was not read.
func fail(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	io.WriteString(conn, "HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/plain; charset=utf-8\r\n"+
		"Content-Length: 21\r\n\r\nInternal Server Error")
	conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	io.Copy(io.Discard, conn)
	conn.Close()
}

// Close waits for the connections to be closed.
func (a *acps) Close() error {
	a.serving.Wait()
	return nil
}

// answer answers a request, and reports whether the application fails instead.
func (a *acps) answer(w http.ResponseWriter, r *http.Request, body []byte) (fails bool) {
	message := gjson.GetBytes(body, "params.message")
	command, text := message.Get("command").Str, message.Get("dataItems.0.text").Str
	a.mu.Lock()
	defer a.mu.Unlock()
	if (command == "start" || command == "continue") && a.lost > 0 {
		if a.lost--; !a.proxy {
			panic(http.ErrAbortHandler)
		}
		http.Error(w, "Bad Gateway", http.StatusBadGateway)
		return false
	}
	a.asked = append(a.asked, strings.TrimSpace(r.URL.Path+" "+command))
	switch method := gjson.GetBytes(body, "method").Str; {
	case r.URL.Path == a.rpc && method == "rpc":
	case r.URL.Path == a.stream && a.stream != "" && method == "stream":
	case r.URL.Path != a.rpc && (r.URL.Path != a.stream || a.stream == ""):
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"detail":"Not Found"}`)
		return false
	default:
		return true
	}
	id := message.Get("taskId").Str
	known := a.tasks[id]
	if known != nil && time.Now().Before(known.known) {
		known = nil
	}
	switch {
	case known == nil && command == "start":
		known = &acpsTask{state: task.Accepted, since: time.Now(), due: time.Now().Add(a.works), next: "done " + text}
		if text == "ask" {
			known = &acpsTask{state: task.AwaitingInput, since: time.Now()}
		}
		if a.tasks == nil {
			a.tasks = map[string]*acpsTask{}
		}
		if a.tasks[id] = known; a.registers > 0 {
			known.known, a.registers = time.Now().Add(a.registers), 0
			panic(http.ErrAbortHandler)
		}
	case known == nil:
		return true
	}
	if !known.due.IsZero() && !time.Now().Before(known.due) {
		*known = acpsTask{state: task.AwaitingCompletion, since: known.due, product: known.next, history: known.history}
	}
	if command == "start" || command == "continue" {
		known.history = append(known.history, fmt.Sprintf(`{"type":"message","id":%q,"command":%q}`,
			message.Get("id").Str, command))
	}
	if command == "continue" && text != "" && known.state.Settled() && known.due.IsZero() {
		known.due, known.next = time.Now().Add(a.works), "done "+text
	}
	if command == "continue" && a.cuts {
		panic(http.ErrAbortHandler)
	}
	products := ""
	if known.product != "" {
		products = fmt.Sprintf(`{"id":"p","name":null,"dataItems":[{"type":"text","text":%q,"metadata":null}]}`,
			known.product)
	}
	history := "null"
	if after := message.Get("commandParams.lastMessageSentAt"); a.keeps && after.Type == gjson.Null {
		history = "[" + strings.Join(known.history, ",") + "]"
	}
	answer := fmt.Sprintf(`{"type":"task","id":%q,"sessionId":"s","status":{"state":%q,"stateChangedAt":%q,`+
		`"dataItems":null},"products":[%s],"messageHistory":%s}`,
		id, known.state, known.since.Format(time.RFC3339Nano), products, history)
	if r.URL.Path == a.stream && command != "" && gjson.GetBytes(body, "method").Str == "stream" {
		w.Header().Set("Content-Type", "text/event-stream")
		for known.state = task.AwaitingCompletion; answer != ""; answer = "" {
			known.product, known.due = known.next, time.Time{}
			fmt.Fprintf(w, `data: {"jsonrpc":"2.0","id":"1","result":{"eventSeq":1,"eventData":%s}}`+"\n\n", answer)
			fmt.Fprintf(w, `data: {"jsonrpc":"2.0","id":"1","result":{"eventSeq":2,`+
				`"eventData":{"type":"product-chunk","taskId":%q,"product":{"id":"p","dataItems":[{"type":"text",`+
				`"text":%q}]}}}}`+"\n\n", id, known.product)
			fmt.Fprintf(w, `data: {"jsonrpc":"2.0","id":"1","result":{"eventSeq":3,`+
				`"eventData":{"type":"status-update","taskId":%q,"status":{"state":%q,"stateChangedAt":%q}}}}`+"\n\n",
				id, known.state, time.Now().Format(time.RFC3339Nano))
		}
		return false
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":"1","result":%s,"error":null}`, answer)
	return false
}

// taken returns the requests to the agent since the last call.
func (a *acps) taken() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := a.asked
	a.asked = nil
	return asked
}

func speaksAIP(url string) func(*settings) {
	return func(c *settings) { c.Codec, c.URL = aip.Client("leader"), url }
}

// start and then return the turns of one task.
func start(id, text string) *agent.Turn {
	return &agent.Turn{Ref: agent.Ref{Task: id, Session: "s"},
		Message: task.Message{Command: task.Start, DataItems: []task.DataItem{task.Text(text)}}}
}

func then(last agent.Report, id, text string) *agent.Turn {
	t := start(id, text)
	t.Message.Command, t.From, t.Revision, t.Known = task.Continue, last.State, last.Revision, last.Products
	if text == "" {
		t.Message.DataItems = nil
	}
	return t
}

// TestContinueIsAnsweredFirst: an agent's answer before it has acted is not the end of the turn.
func TestContinueIsAnsweredFirst(t *testing.T) {
	a := &acps{rpc: "/", works: 40 * time.Second}
	withAgent(t, a, speaksAIP("http://agent/"), func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
		var last agent.Report
		for rep, err := range carryOut(t.Context(), h, start("t", "ask"), false) {
			if err != nil {
				t.Fatal(err)
			}
			last = rep
		}
		for _, tc := range []struct {
			text string
			want []string
			took time.Duration
		}{
			{"blue", []string{"awaiting-completion p=done blue"}, 41 * time.Second},
			{"red", []string{"awaiting-completion p=done red"}, 41 * time.Second},
			{"", []string{"awaiting-completion p=done red"}, 5 * time.Minute}, // it takes no message without text
		} {
			begun := time.Now()
			var got []string
			for rep, err := range carryOut(t.Context(), h, then(last, "t", tc.text), false) {
				if rep.Delivery == agent.DeliveryUnknown {
					got, last = append(got, one(rep, err)), rep
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tc.text, diff)
			}
			if took := time.Since(begun).Truncate(tc.took); took != tc.took {
				t.Errorf("%q took %v", tc.text, time.Since(begun))
			}
		}
	})
}

// TestContinueIsTakenOnce: a continue answered before it was acted on continues by polling, and is not sent again, when
// another process resumes the turn.
func TestContinueIsTakenOnce(t *testing.T) {
	a := &acps{rpc: "/", works: 40 * time.Second}
	withAgent(t, a, speaksAIP("http://agent/"), func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
		var last agent.Report
		for rep := range carryOut(t.Context(), h, start("t", "ask"), false) {
			last = rep
		}
		x := then(last, "t", "blue")
		for rep := range carryOut(t.Context(), h, x, false) {
			if x.Acknowledged = rep.Delivery == agent.DeliveryAcknowledged; !x.Acknowledged {
				t.Errorf("the agent has taken the message, and the report is %+v", rep)
			}
			break // as at a crash
		}
		a.taken()
		if diff := cmp.Diff([]string{"awaiting-completion p=done blue"}, show(h.Resume(t.Context(), x))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, asked := range a.taken() {
			if asked == "/ continue" {
				t.Error("the message was sent again")
			}
		}
	})
}

// sendOnly sends a turn's message, and does nothing more, like a gateway dying then.
func sendOnly(ctx context.Context, at *agentUnderTest, t *agent.Turn) error {
	x, err := at.transport.Routes(translate.Send)[0].Open(ctx, &upstream.Request{
		Operation: translate.Send, Ref: t.Ref, Body: at.codec.AppendTurn(nil, t, false), IdleTimeout: time.Minute,
	})
	if err != nil {
		return err
	}
	err = x.Begin()
	x.Close(err)
	return err
}

// TestContinueIsNotSentTwice: a continue, known only to have been sent, is not sent again to an agent that may be
// acting on it. Its result is not lost.
func TestContinueIsNotSentTwice(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		resume     bool // by another process, after a crash
		stream     bool
		want       string
		took       time.Duration
	}{
		{"the agent acts", "blue", false, false, "awaiting-completion p=done blue", 40 * time.Second},
		{"the agent acts, by stream", "blue", false, true, "awaiting-completion p=done blue", 40 * time.Second},
		{"the agent acts, after a crash", "blue", true, false, "awaiting-completion p=done blue", 40 * time.Second},
		{"the agent does not act", "", false, false, notKnown, 5 * time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := &acps{rpc: "/", stream: "/", works: 40 * time.Second}
			withAgent(t, a, func(c *settings) { speaksAIP("http://agent/")(c); c.RetryFor = 10 * time.Second },
				func(t *testing.T, h *upstream.Agent, m *agentUnderTest) {
					var last agent.Report
					for rep := range carryOut(t.Context(), h, start("t", "ask"), false) {
						last = rep
					}
					a.mu.Lock()
					a.cuts = true
					a.mu.Unlock()
					x, begun := then(last, "t", tc.text), time.Now()
					var got []string
					if !tc.resume {
						got = show(carryOut(t.Context(), h, x, tc.stream))
					} else if err := sendOnly(t.Context(), m, x); err == nil {
						t.Fatal("the connection did not break")
					}
					// After an error, the life-cycle resumes the turn.
					if tc.resume || len(got) > 0 && got[len(got)-1] != tc.want {
						got = show(h.Resume(t.Context(), x))
					}
					if len(got) != 1 || got[0] != tc.want {
						t.Errorf("got %q, want %q", got, tc.want)
					}
					if took := time.Since(begun); took < tc.took || took > tc.took+5*time.Second {
						t.Errorf("it took %v, want %v", took, tc.took)
					}
					sent := 0
					for _, asked := range a.taken() {
						if asked == "/ continue" {
							sent++
						}
					}
					if sent != 1 {
						t.Errorf("the message was sent %d times", sent)
					}
				})
		})
	}
}

// notKnown is the error of a continue if its agent does not say whether it has received it.
const notKnown = "agent-timeout: the connection to the agent broke, and it is unknown whether the agent has received " +
	"the message: the agent does not say, and has not acted on it for 5m0s"

// TestUnchangedAnswer: an answer of the state before the turn is waited out if the state is dated. An agent without
// dates may say the same twice.
func TestUnchangedAnswer(t *testing.T) {
	const dated = `{"jsonrpc":"2.0","id":"1","result":{"id":"t","status":{"state":"input-required",` +
		`"timestamp":"2026-01-01T00:00:00.123Z"}}}`
	seconds := strings.Replace(dated, ".123", "", 1)
	event := strings.Replace(dated, `"}}}`, `"},"final":true}}`, 1)
	for _, tc := range []struct {
		name, before string
		stream       bool
		agent        script
		want         []string
	}{
		{"no time", is("input-required"), false, script{"send": says(is("input-required"))},
			[]string{"input-required"}},
		{"a time in seconds", seconds, false, script{"send": says(seconds)}, []string{"input-required"}},
		{"a time", dated, false, script{"send": says(dated), "get": says(dated, dated, is("completed"))},
			[]string{"completed"}},
		{"no time, by a stream", is("input-required"), true,
			script{"sendSubscribe": streams(true, is("input-required"))}, []string{"input-required"}},
		{"a time, by a stream", dated, true,
			script{"sendSubscribe": streams(true, event, news("working"), news("completed"))},
			[]string{"working", "completed"}},
		{"a time, by a stream that is cut", dated, true,
			script{"sendSubscribe": streams(false, event), "get": says(dated, dated, is("completed"))},
			[]string{"completed"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			withAgent(t, tc.agent.handler(), nil, func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
				before, err := a2a.Legacy().Reply([]byte(tc.before), nil)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, show(carryOut(t.Context(), h, then(before, "t", "y"), tc.stream))); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestWhereAPartnerAnswers: a Partner is reached by the URL of its mount point and by that of its rpc, with streams at
// any place or none; and the findings are remembered.
func TestWhereAPartnerAnswers(t *testing.T) {
	for _, tc := range []struct {
		name, url    string
		rpc, stream  string
		first, again []string
	}{
		{"one endpoint for all", "/a", "/a", "/a", []string{"/a start"}, []string{"/a start"}},
		{"one endpoint, no streams", "/a", "/a", "", []string{"/a start", "/a/stream start", "/a start"},
			[]string{"/a start"}},
		{"below its mount point", "/a", "/a/rpc", "/a/stream", []string{"/a start", "/a/stream start"},
			[]string{"/a/stream start"}},
		{"below its root", "/", "/rpc", "/stream", []string{"/ start", "/stream start"}, []string{"/stream start"}},
		{"below its mount point, no streams", "/a/", "/a/rpc", "",
			[]string{"/a/ start", "/a/stream start", "/a/ start", "/a/rpc start"}, []string{"/a/rpc start"}},
		{"the URL of its rpc", "/a/rpc", "/a/rpc", "/a/stream", []string{"/a/stream start"},
			[]string{"/a/stream start"}},
		{"the URL of its rpc, no streams", "/a/rpc", "/a/rpc", "",
			[]string{"/a/stream start", "/a/rpc start", "/a/rpc start"}, []string{"/a/rpc start"}},
		{"the URL of its rpc, which has streams, too", "/a/rpc", "/a/rpc", "/a/rpc",
			[]string{"/a/stream start", "/a/rpc start"}, []string{"/a/rpc start"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := &acps{rpc: tc.rpc, stream: tc.stream}
			withAgent(t, a, speaksAIP("http://agent"+tc.url), func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
				for i, want := range [][]string{tc.first, tc.again} {
					id := fmt.Sprint("t", i)
					var state task.State
					product := ""
					for rep, err := range h.Run(t.Context(), start(id, "x"), true) {
						if err != nil {
							t.Fatal(err)
						}
						for _, p := range rep.Products {
							product = p.DataItems[0].Text
						}
						for _, c := range chunksOf(&rep) {
							product = c.Product.DataItems[0].Text
						}
						if rep.State != task.None {
							state = rep.State
						}
					}
					if state != task.AwaitingCompletion || product != "done x" {
						t.Errorf("%s is %s with the product %q", id, state, product)
					}
					asked := a.taken()
					for n := len(asked); n > 0 && strings.HasSuffix(asked[n-1], " get"); n-- {
						asked = asked[:n-1]
					}
					if diff := cmp.Diff(want, asked); diff != "" {
						t.Errorf("%s is asked for (-want +got):\n%s", id, diff)
					}
				}
			})
		})
	}
}

// TestNoPartner: a URL without a Partner is an error each time, and no reason to look elsewhere for ever.
func TestNoPartner(t *testing.T) {
	a := &acps{rpc: "/a/rpc"}
	withAgent(t, a, speaksAIP("http://agent/b"), func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
		want := []string{"invalid-agent-response: no agent answers at the agent's URL (HTTP 404, application/json)"}
		for _, stream := range []bool{false, true, false} {
			if diff := cmp.Diff(want, show(carryOut(t.Context(), h, start("t", "x"), stream))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		a.mu.Lock()
		a.rpc = "/b/rpc" // it is there now
		a.mu.Unlock()
		want = []string{"awaiting-completion p=done x"}
		if diff := cmp.Diff(want, show(carryOut(t.Context(), h, start("t", "x"), false))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
