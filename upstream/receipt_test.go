// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// resends is a configuration for a message to be sent again for at most 10 s.
func resends(after time.Duration, mode upstream.Resend) func(*settings) {
	return func(c *settings) { c.RetryFor, c.ResendAfter, c.Resend = 10*time.Second, after, mode }
}

// resendsByAIP is a configuration of an agent of AIP, asked for 10 s before a message is sent again, if ever.
func resendsByAIP(never bool) func(*settings) {
	mode := upstream.ResendProven
	if never {
		mode = upstream.ResendNever
	}
	return func(c *settings) {
		speaksAIP("http://agent/")(c)
		resends(10*time.Second, mode)(c)
	}
}

// lifeCycle carries a turn out as the life-cycle does: a turn ending by an error, or with its process, is resumed, and
// carried out if the agent has not received it.
func lifeCycle(t *testing.T, h *upstream.Agent, x *agent.Turn, stream, crashed bool) (all []string) {
	t.Helper()
	if !crashed {
		if all = show(carryOut(t.Context(), h, x, stream)); !strings.HasPrefix(all[len(all)-1], "invalid-agent-response") {
			return all
		}
	}
	all = show(h.Resume(t.Context(), x))
	if last := all[len(all)-1]; strings.HasPrefix(last, "agent-unavailable") || strings.HasPrefix(last, "task-not-found") {
		x.Repeated = true
		return show(carryOut(t.Context(), h, x, stream))
	}
	return all
}

// TestContinueIsNotLost: a continue is sent again if it has not arrived, by the agent's messages. The product of the
// turn before is never its answer.
func TestContinueIsNotLost(t *testing.T) {
	const result = "awaiting-completion p=done blue"
	for _, tc := range []struct {
		name    string
		agent   *acps
		arrives bool // and then the connection breaks
		crashed bool // the gateway is killed after it has sent the message
		never   bool
		want    string
		sent    int // the number of times the message arrives
	}{
		{"the connection breaks", &acps{keeps: true, lost: 1}, false, false, false, result, 1},
		{"it breaks twice", &acps{keeps: true, lost: 2}, false, false, false, result, 1},
		{"a proxy does not reach the agent", &acps{keeps: true, lost: 1, proxy: true}, false, false, false, result, 1},
		{"it arrives, and the agent acts later", &acps{keeps: true}, true, false, false, result, 1},
		{"it arrives before a crash, and the agent acts later", &acps{keeps: true}, true, true, false, result, 1},
		{"it is lost in a crash", &acps{keeps: true, lost: 1}, false, true, false, result, 1},
		{"the agent keeps no messages", &acps{lost: 1}, false, false, false, notKnown, 0},
		{"the agent keeps no messages, after a crash", &acps{lost: 1}, false, true, false, notKnown, 0},
		{"the agent keeps no messages, and has it", &acps{}, true, false, false, result, 1},
		{"it is never sent again", &acps{keeps: true, lost: 1}, false, false, true, notAgainUnknown, 0},
		{"it is never sent again, after a crash", &acps{keeps: true, lost: 1}, false, true, true, notAgainUnknown, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := tc.agent
			a.rpc, a.works = "/", 40*time.Second
			lost := a.lost
			a.lost = 0
			change := resendsByAIP(tc.never)
			withAgent(t, a, change, func(t *testing.T, h *upstream.Agent, m *agentUnderTest) {
				first := start("t", "red")
				first.Message.ID = "m1"
				var last agent.Report
				for rep, err := range carryOut(t.Context(), h, first, false) {
					if last = rep; err != nil {
						t.Fatal(err)
					}
				}
				x := then(last, "t", "blue")
				x.Message.ID, x.History = "m2", []task.Message{first.Message, {ID: "m2"}}
				a.taken()
				a.mu.Lock()
				a.lost, a.cuts = lost, tc.arrives
				a.mu.Unlock()
				if tc.crashed {
					sendOnly(t.Context(), m, x)
				}
				got := lifeCycle(t, h, x, false, tc.crashed)
				if got[len(got)-1] != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
				if n := count(a.taken(), "/ continue"); n != tc.sent {
					t.Errorf("the message has arrived %d times, want %d", n, tc.sent)
				}
			})
		})
	}
}

// TestResumeOfWhatIsUnreported: a start without a report of the agent counts as not received, once the agent has been
// asked for long enough, if it may be sent again.
func TestResumeOfWhatIsUnreported(t *testing.T) {
	for _, tc := range []struct {
		name       string
		unreported bool
		mode       upstream.Resend
		want       string
	}{
		{"reported", false, upstream.ResendAlways, "task-not-found: the agent does not know this task: what?"},
		{"not reported", true, upstream.ResendAlways, "agent-unavailable: the agent has not received the message"},
		{"not reported, and nothing is proven", true, upstream.ResendProven, notProven},
		{"not reported, and never sent again", true, upstream.ResendNever, notAgainUnknown},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := script{"get": says(fails(-32001, "what?"))}
			change := resends(10*time.Second, tc.mode)
			withAgent(t, a.handler(), change, func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
				x, begun := turn("x"), time.Now()
				x.Unreported = tc.unreported
				if diff := cmp.Diff([]string{tc.want}, show(h.Resume(t.Context(), x))); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if took := time.Since(begun); took < 10*time.Second {
					t.Errorf("the agent was asked for %v", took)
				}
			})
		})
	}
}

// notAgainUnknown is the error of a message not arrived, by the agent's word, and never sent again.
const notAgainUnknown = "agent-timeout: the connection to the agent broke, and the agent does not have the message; " +
	"it is unknown whether the agent will act on it, so it is not sent again"

func count(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// TestStartIsRunOnce: a start read by the agent is not sent again, although the connection has broken before the agent
// knows its task.
func TestStartIsRunOnce(t *testing.T) {
	const result = "awaiting-completion p=done red"
	for _, tc := range []struct {
		name            string
		stream, crashed bool
		never           bool
		registers       time.Duration // zero: the start is lost
		want            string
		sent            int
	}{
		{"rpc", false, false, false, 300 * time.Millisecond, result, 1},
		{"stream", true, false, false, 300 * time.Millisecond, result, 1},
		{"after a crash", false, true, false, 300 * time.Millisecond, result, 1},
		{"late", false, false, false, 9900 * time.Millisecond, result, 1},
		{"lost", false, false, false, 0, result, 1},
		{"lost, stream", true, false, false, 0, result, 1},
		{"lost in a crash", false, true, false, 0, result, 1},
		{"never", false, false, true, 300 * time.Millisecond, result, 1},
		{"lost, never", false, false, true, 0, notAgainUnknown, 0},
		{"lost in a crash, never", false, true, true, 0, notAgainUnknown, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := &acps{rpc: "/", stream: "/", registers: tc.registers}
			if tc.registers == 0 {
				a.lost = 1
			}
			change := resendsByAIP(tc.never)
			withAgent(t, a, change, func(t *testing.T, h *upstream.Agent, m *agentUnderTest) {
				x := start("t", "red")
				if tc.crashed {
					sendOnly(t.Context(), m, x)
				}
				got := lifeCycle(t, h, x, tc.stream, tc.crashed)
				last := got[len(got)-1]
				if last != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
				if n := count(a.taken(), "/ start"); n != tc.sent {
					t.Errorf("the start has arrived %d times, want %d", n, tc.sent)
				}
			})
		})
	}
}

// TestStartIsRunOnceByOthers is TestStartIsRunOnce for an agent of another dialect, knowing the gateway's name for the
// task.
func TestStartIsRunOnceByOthers(t *testing.T) {
	for _, stream := range []bool{false, true} {
		var begun time.Time
		starts := 0
		begins := func(_ http.ResponseWriter, _ *http.Request, _ int) {
			begun = time.Now()
			starts++
			panic(http.ErrAbortHandler)
		}
		s := script{"send": begins, "sendSubscribe": begins, "get": func(w http.ResponseWriter, _ *http.Request, _ int) {
			switch since := time.Since(begun); {
			case since < 300*time.Millisecond:
				io.WriteString(w, fails(-32001, "what?"))
			case since < 20*time.Second:
				io.WriteString(w, is("working"))
			default:
				io.WriteString(w, is("completed", has("a")))
			}
		}}
		again := resends(10*time.Second, upstream.ResendAlways)
		withAgent(t, s.handler(), again, func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
			got := lifeCycle(t, h, turn("x"), stream, false)
			if diff := cmp.Diff([]string{"working", "completed artifact-0=a"}, got); diff != "" || starts != 1 {
				t.Errorf("stream %v: %d starts (-want +got):\n%s", stream, starts, diff)
			}
		})
	}
}

// TestClosedTask: a Partner has completed its task by itself, and so does not act on a continue. Its old product is no
// answer.
func TestClosedTask(t *testing.T) {
	const ignored = "unsupported-operation: the agent has completed its task by itself and has not acted on the " +
		"message; start another task"
	answer := func(state, since, product string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":"1","result":{"type":"task","id":"t","sessionId":"s","status":{"state":%q,`+
			`"stateChangedAt":"2026-01-01T00:00:0%s+08:00"},"products":[{"id":"p","dataItems":[{"type":"text","text":%q}]}]}}`,
			state, since, product)
	}
	event := func(state, since string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":"1","result":{"eventSeq":1,"eventData":{"type":"status-update",`+
			`"taskId":"t","status":{"state":%q,"stateChangedAt":"2026-01-01T00:00:0%s+08:00"}}}}`, state, since)
	}
	before := answer("awaiting-completion", "1", "old")
	for _, tc := range []struct {
		name   string
		before string
		rpc    []string
		stream step
		want   []string
	}{
		{"by itself since", before, []string{answer("completed", "2", "old")}, nil, []string{ignored}},
		{"by itself before", answer("completed", "2", "old"), []string{answer("completed", "2", "old")}, nil,
			[]string{ignored}},
		{"by itself since, by a stream", before, []string{answer("completed", "2", "old")},
			streams(true, event("completed", "2")), []string{ignored}},
		{"with another product", before, []string{answer("completed", "2", "new")}, nil, []string{"completed p=new"}},
		{"with the same product, after work", before,
			[]string{answer("working", "2", "old"), answer("completed", "3", "old")}, nil,
			[]string{"working p=old", "completed p=old"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := 0
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), `"method":"stream"`) && tc.stream != nil {
					tc.stream(w, r, 0)
					return
				}
				io.WriteString(w, tc.rpc[min(n, len(tc.rpc)-1)])
				n++
			})
			withAgent(t, handler, speaksAIP("http://agent/rpc"), func(t *testing.T, h *upstream.Agent, m *agentUnderTest) {
				last, err := m.codec.Reply([]byte(tc.before), nil)
				if err != nil {
					t.Fatal(err)
				}
				got := show(carryOut(t.Context(), h, then(last, "t", "more"), tc.stream != nil))
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestStreamIsRestated: products lost, repeated or reordered on a Partner's stream are as in the Partner's task, once
// the turn has ended.
func TestStreamIsRestated(t *testing.T) {
	event := func(seq int, data string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":"1","result":{"eventSeq":%d,"eventData":%s}}`, seq, data)
	}
	piece := func(seq int, text string) string {
		return event(seq, fmt.Sprintf(`{"type":"product-chunk","taskId":"t","product":{"id":"p","dataItems":[{"type":"text",`+
			`"text":%q}]},"append":%t,"lastChunk":false}`, text, text != "a"))
	}
	const status = `"status":{"state":"awaiting-completion","stateChangedAt":"2026-01-01T00:00:01+08:00"}`
	end := event(9, `{"type":"status-update","taskId":"t",`+status+`}`)
	const right = `{"jsonrpc":"2.0","id":"1","result":{"type":"task","id":"t",` + status +
		`,"products":[{"id":"p","dataItems":[{"type":"text","text":"abc"}]}]}}`
	for _, tc := range []struct {
		name   string
		events []string
		get    string
		want   string
	}{
		{"all", []string{piece(1, "a"), piece(2, "b"), piece(3, "c")}, right, "abc"},
		{"lost", []string{piece(1, "a"), piece(3, "c")}, right, "abc"},
		{"repeated", []string{piece(1, "a"), piece(2, "b"), piece(2, "b"), piece(3, "c")}, right, "abc"},
		{"reordered", []string{piece(1, "a"), piece(3, "c"), piece(2, "b")}, right, "abc"},
		{"all lost", nil, right, "abc"},
		{"the task has no products", []string{piece(1, "a"), piece(2, "b")},
			strings.Replace(right, `[{"id":"p","dataItems":[{"type":"text","text":"abc"}]}]`, "[]", 1), "ab"},
		{"the task is older", []string{piece(1, "a")}, strings.Replace(right, "awaiting-completion", "working", 1), "a"},
		{"no get", []string{piece(1, "a"), piece(2, "b")}, fails(-32001, "what?"), "ab"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), `"method":"stream"`) {
					streams(true, append(slices.Clone(tc.events), end)...)(w, r, 0)
					return
				}
				io.WriteString(w, tc.get)
			})
			withAgent(t, handler, speaksAIP("http://agent/"), func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
				var fold task.Fold
				fold.Apply(task.Event{Seq: 1, Task: &task.Task{}})
				var last task.State
				for rep, err := range h.Run(t.Context(), start("t", "x"), true) {
					if last = rep.State; err != nil {
						t.Fatal(err)
					}
					chunks := chunksOf(&rep)
					if rep.Full {
						chunks = task.Diff(fold.Task().Products, rep.Products)
					}
					for i := range chunks {
						fold.Apply(task.Event{Seq: fold.Seq + 1, Chunk: &chunks[i]})
					}
				}
				var got string
				for _, p := range fold.Task().Products {
					for _, it := range p.DataItems {
						got += it.Text
					}
				}
				if got != tc.want || last != task.AwaitingCompletion {
					t.Errorf("the product is %q, want %q; the task is %s", got, tc.want, last)
				}
			})
		})
	}
}

// TestCanceledStreamIsNotRestated: if its stream ends by the status canceled, an agent is not asked about the task: the
// answer to the cancel has all of it.
func TestCanceledStreamIsNotRestated(t *testing.T) {
	end := `{"jsonrpc":"2.0","id":"1","result":{"eventSeq":1,"eventData":{"type":"status-update","taskId":"t",` +
		`"status":{"state":"canceled","stateChangedAt":"2026-01-01T00:00:01+08:00"}}}}`
	var asked atomic.Int64
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); !strings.Contains(string(body), `"method":"stream"`) {
			asked.Add(1)
		}
		streams(true, end)(w, r, 0)
	})
	withAgent(t, handler, speaksAIP("http://agent/"), func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
		if diff := cmp.Diff([]string{"canceled"}, show(h.Run(t.Context(), start("t", "x"), true))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if n := asked.Load(); n != 0 {
			t.Errorf("the agent was asked %d times", n)
		}
	})
}

// TestStallIsNoLongerThanTheTimeout: a task is given up when the timeout is over, if its agent has answered by an
// error, and then shows it as working.
func TestStallIsNoLongerThanTheTimeout(t *testing.T) {
	s := script{"send": says(fails(-32603, "oops")), "get": says(is("working"))}
	withAgent(t, s.handler(), func(c *settings) { c.IdleTimeout = 6 * time.Second },
		func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
			begun := time.Now()
			show(carryOut(t.Context(), h, turn("x"), false))
			got := show(h.Resume(t.Context(), turn("x")))
			want := "agent-timeout: the agent has changed nothing for 6s"
			if took := time.Since(begun); got[len(got)-1] != want || took > 8*time.Second {
				t.Errorf("after %v: %q, want %q", took, got, want)
			}
		})
}

// TestAnsweredTurnIsNotDoubted: an agent is asked once after it has answered a message by an error, if it then does not
// know its task, or shows it unchanged.
func TestAnsweredTurnIsNotDoubted(t *testing.T) {
	for _, tc := range []struct {
		name, get string
		from      task.State
		want      string
	}{
		{"a start", fails(-32001, "what?"), task.None, "task-not-found: the agent does not know this task: what?"},
		{"a continue", is("input-required"), task.AwaitingInput,
			"agent-unavailable: the agent has not received the message"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			withAgent(t, script{"get": says(tc.get)}.handler(), resends(10*time.Second, upstream.ResendAlways),
				func(t *testing.T, h *upstream.Agent, m *agentUnderTest) {
					x := turn("x")
					if tc.from != task.None {
						before, err := m.codec.Reply([]byte(tc.get), nil)
						if err != nil {
							t.Fatal(err)
						}
						x = then(before, "t", "x")
					}
					for _, answered := range []bool{true, false} {
						x.Answered = answered
						begun := time.Now()
						got := show(h.Resume(t.Context(), x))
						if diff := cmp.Diff([]string{tc.want}, got); diff != "" {
							t.Errorf("(-want +got):\n%s", diff)
						}
						if took := time.Since(begun); answered != (took == 0) {
							t.Errorf("answered %v: it took %v", answered, took)
						}
					}
				})
		})
	}
}
