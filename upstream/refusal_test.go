// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// TestErrorsInPlaceOfATask: an agent answering a start by an error has made no task. Its own refusals are known as
// such. If the agent would have named the task, it is not asked for it by a name it cannot know.
func TestErrorsInPlaceOfATask(t *testing.T) {
	for _, tc := range []struct {
		code    int
		from    task.State
		names   bool // the agent names its tasks
		refused bool
		asked   int // the number of times the agent is asked for the task
	}{
		{code: -32005, names: true, refused: true},
		{code: -32602, names: true, refused: true},
		{code: -32001, names: true, refused: true},
		{code: -32004, refused: true},
		{code: -32603, names: true},
		{code: -32603, asked: 2}, // when it has failed, and by Resume
		{code: -32602, names: true, from: task.AwaitingInput, asked: 1},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%+v by stream %v", tc, stream), func(t *testing.T) {
				asked := 0
				answer := says(fails(tc.code, "no"))
				fake := script{"message/send": answer, "message/stream": answer, "send": answer, "sendSubscribe": answer,
					"get": func(w http.ResponseWriter, r *http.Request, n int) {
						asked++
						says(fails(-32001, "what?"))(w, r, n)
					}}
				change := func(s *settings) {
					if tc.names {
						names03(s)
					}
				}
				withAgent(t, fake.handler(), change, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
					start := turn("x")
					if start.From = tc.from; tc.from != task.None {
						start.Message.Command = task.Continue
					}
					var err error
					for _, err = range carryOut(t.Context(), a, start, stream) {
					}
					if got := upstream.ReasonOf(err) == upstream.Refused; got != tc.refused {
						t.Errorf("refused: %v: %v", got, err)
					}
					if !tc.refused {
						resumed := *start
						resumed.Answered = true
						for _, err = range a.Resume(t.Context(), &resumed) {
						}
						if task.KindOf(err) != task.TaskNotFound {
							t.Errorf("resumed: %v", err)
						}
					}
					if diff := cmp.Diff(tc.asked, asked); diff != "" {
						t.Errorf("how often it is asked (-want +got):\n%s", diff)
					}
				})
			})
		}
	}
}

// TestRefusedMessageIsNoLackOfStreams: an agent refusing one message as not supported has streams as before.
func TestRefusedMessageIsNoLackOfStreams(t *testing.T) {
	refuses := true
	streamed, sent := 0, 0
	fake := script{
		"message/stream": func(w http.ResponseWriter, r *http.Request, n int) {
			if streamed++; refuses {
				says(fails(-32004, "no films"))(w, r, n)
				return
			}
			streams(false, done03rpc)(w, r, n)
		},
		"message/send": func(w http.ResponseWriter, r *http.Request, n int) {
			sent++
			says(fails(-32004, "no films"))(w, r, n)
		},
	}
	withAgent(t, fake.handler(), names03, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
		for _, err := range a.Run(t.Context(), turn("a film"), true) {
			if upstream.ReasonOf(err) != upstream.Refused {
				t.Errorf("it is answered %v", err)
			}
		}
		refuses = false
		got := show(a.Run(t.Context(), turn("a text"), true))
		if diff := cmp.Diff([]string{"completed"}, got); diff != "" || streamed != 2 || sent != 1 {
			t.Errorf("%d streams and %d messages (-want +got):\n%s", streamed, sent, diff)
		}
	})
}
