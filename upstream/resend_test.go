// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// notProven is the error of a message denied by its agent, without a proof.
const notProven = "agent-timeout: the connection to the agent broke, and the agent says that it does not have the " +
	"message; it may have done the work all the same, so the message is not sent again; a new start does the work again"

// losesAnswers are the ways of an answer to get lost.
var losesAnswers = map[string]step{
	"a cut": breaksFirst(99, nil),
	"502":   answersWith(502, "Bad Gateway"),
	"504":   answersWith(504, "Gateway Timeout"),
	"an empty stream": func(w http.ResponseWriter, r *http.Request, n int) {
		streams(false)(w, r, n)
	},
}

// times returns the number of requests to an agent by methods.
func (l *listing) times(methods ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, method := range methods {
		n += count(l.asked, method)
	}
	return n
}

// sends returns the number of messages sent to an agent.
func (l *listing) sends() int { return l.times("send", "sendSubscribe") }

// TestWorkIsNotRepeated: an agent of A2A v0.1 storing a task at its end, or never, gets a message once, whatever it
// says of it after its answer was lost, and whether the connection broke or the process.
func TestWorkIsNotRepeated(t *testing.T) {
	unknown := says(fails(-32001, "what?"))
	for name, lost := range losesAnswers {
		for _, stream := range []bool{false, true} {
			for _, from := range []task.State{task.None, task.AwaitingInput} {
				get := unknown
				if from == task.AwaitingInput {
					get = says(is("input-required"))
				}
				at := &listing{Handler: script{"send": lost, "sendSubscribe": lost, "get": get}.handler()}
				again := resends(10*time.Second, upstream.ResendProven)
				withAgent(t, at, again, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
					x := turn("x")
					if from == task.AwaitingInput {
						x = goesOn(t)
					}
					got := show(carryOut(t.Context(), a, x, stream))
					if diff := cmp.Diff([]string{notProven}, got); diff != "" || at.sends() != 1 {
						t.Errorf("%s, from %q, stream %v: %d messages (-want +got):\n%s", name, from, stream, at.sends(), diff)
					}
					if x.Unreported = from == task.None; name != "a cut" {
						return
					}
					got = lifeCycle(t, a, x, stream, true)
					if diff := cmp.Diff([]string{notProven}, got); diff != "" || at.sends() != 1 {
						t.Errorf("after a crash, from %q: %d messages (-want +got):\n%s", from, at.sends(), diff)
					}
				})
			}
		}
	}
}

// TestResultThatIsStoredAtTheEnd: such an agent's answer at the end of its work is the result, if it is asked then.
func TestResultThatIsStoredAtTheEnd(t *testing.T) {
	var began time.Time
	at := &listing{Handler: script{
		"send": func(http.ResponseWriter, *http.Request, int) { began = time.Now(); panic(http.ErrAbortHandler) },
		"get": func(w http.ResponseWriter, _ *http.Request, _ int) {
			if time.Since(began) < 7*time.Second {
				io.WriteString(w, fails(-32001, "what?"))
				return
			}
			io.WriteString(w, is("completed", has("a")))
		},
	}.handler()}
	again := resends(10*time.Second, upstream.ResendProven)
	withAgent(t, at, again, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
		got := lifeCycle(t, a, turn("x"), false, false)
		if diff := cmp.Diff([]string{"completed artifact-0=a"}, got); diff != "" || at.sends() != 1 {
			t.Errorf("%d messages (-want +got):\n%s", at.sends(), diff)
		}
	})
}

// TestWorkIsRepeatedOnce: the word of an agent, seen to know a task while it works on it, counts once for each message,
// also in the process resuming the turn. An agent known to do no work twice gets the message for as long as retry_for
// says.
func TestWorkIsRepeatedOnce(t *testing.T) {
	unknown, known := says(fails(-32001, "what?")), says(is("working"), is("completed"))
	for name, tc := range map[string]struct {
		breaks  int
		seen    bool // in this process
		kept    bool // by the process before, which has crashed
		crashed bool
		mode    upstream.Resend
		want    string
		sends   int
	}{
		"seen":                         {1, true, false, false, upstream.ResendProven, "completed", 2},
		"seen, and lost again":         {9, true, false, false, upstream.ResendProven, notProven, 2},
		"seen before a crash":          {0, false, true, true, upstream.ResendProven, "completed", 1},
		"and lost again":               {9, false, true, true, upstream.ResendProven, notProven, 1},
		"not seen before a crash":      {0, false, false, true, upstream.ResendProven, notProven, 0},
		"not seen, and always":         {3, false, false, false, upstream.ResendAlways, "completed", 4},
		"after a crash, and always":    {1, false, false, true, upstream.ResendAlways, "completed", 2},
		"seen, and never":              {1, true, false, false, upstream.ResendNever, notAgainUnknown, 1},
		"seen, a crash, and never":     {0, true, false, true, upstream.ResendNever, notAgainUnknown, 0},
		"not seen, and nothing breaks": {0, false, false, false, upstream.ResendProven, "completed", 1},
	} {
		lost, asks := breaksFirst(tc.breaks, says(is("completed"))), 0
		at := &listing{}
		at.Handler = script{
			"send": func(w http.ResponseWriter, r *http.Request, n int) {
				if tc.seen && n == 0 { // another task, which it works on
					io.WriteString(w, is("working"))
					return
				} else if tc.seen {
					n--
				}
				lost(w, r, n)
			},
			"get": func(w http.ResponseWriter, r *http.Request, n int) {
				if asks++; tc.seen && asks <= 2 {
					known(w, r, n)
					return
				}
				unknown(w, r, n)
			},
		}.handler()
		withAgent(t, at, resends(3*time.Second, tc.mode), func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
			if tc.seen {
				show(carryOut(t.Context(), a, turn("another"), false))
				at.asked = nil
			}
			x := turn("x")
			x.Unreported, x.Kept = tc.crashed, tc.kept
			got := lifeCycle(t, a, x, false, tc.crashed)
			if last := got[len(got)-1]; last != tc.want || at.sends() != tc.sends {
				t.Errorf("%s: %d messages, want %d: %s", name, at.sends(), tc.sends, strings.Join(got, "; "))
			}
		})
	}
}
