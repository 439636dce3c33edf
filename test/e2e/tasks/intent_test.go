// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// rememberingAgent is an agent that distinguishes starts by the id of the task: a start that it has had is answered by
// its task, and runs nothing.
type rememberingAgent struct {
	mu   sync.Mutex
	runs map[string]map[string]bool // by the text of the message: the ids under which it ran
}

func (a *rememberingAgent) answer(w http.ResponseWriter, r *http.Request, h site.Heard) {
	text, known := "", false
	for _, p := range h.Params.Message.Parts {
		text += p.Text
	}
	a.mu.Lock()
	switch h.Method {
	case "tasks/send":
		if a.runs[text] == nil {
			a.runs[text] = make(map[string]bool)
		}
		a.runs[text][h.Params.ID] = true
		known = true
	case "tasks/get":
		for _, ids := range a.runs {
			known = known || ids[h.Params.ID]
		}
	}
	a.mu.Unlock()
	if !known {
		site.WriteError(w, h, -32001, "Task not found")
		return
	}
	select { // so that the gateway dies before, while and after the agent works
	case <-time.After(rand.N(4 * time.Millisecond)):
	case <-r.Context().Done():
	}
	site.WriteTask(w, h, "completed", "done")
}

// TestKillBetweenIntentAndAnswer kills the gateway at a thousand moments between a start and its answer: each round
// interrupts a start of every caller, wherever that is, with a short text, or one of 11 or 22 KiB. A start that was
// answered is there afterwards. One that was not is there, too, or was lost before the agent got it; it has not run as
// two tasks of the agent.
func TestKillBetweenIntentAndAnswer(t *testing.T) {
	t.Parallel()
	const rounds, callers = 16, 64
	remembering := &rememberingAgent{runs: make(map[string]map[string]bool)}
	agent := site.NewFakeAgent(t, remembering.answer)
	s := site.New(t)
	conf := site.Config{
		Store:  "store pebble " + s.Dir + "/store {\nsync state\n}",
		Handle: "aip_gateway a2a/legacy " + agent.URL + " {\nagent {\nresend always\n}\n}",
	}
	interrupted := 0
	for round := range rounds {
		s.Start(conf)
		answered := make([][]string, callers)
		doubtful := make([]string, callers)
		var all sync.WaitGroup
		load := new(site.Course)
		kill := load.After(200 + rand.IntN(400))
		for i := range callers {
			c := site.LeaderOf(t, s.URL())
			c.Course = load
			all.Go(func() {
				defer c.Close()
				for n := 0; ; n++ {
					id := fmt.Sprintf("%d-%d-%d", round, i, n)
					got, err := c.Try(site.StartCall(id, "say "+id+strings.Repeat(" a \"word\"\n", i%3*1000)))
					if err != nil {
						doubtful[i] = id
						return
					}
					if got.Status.State != task.AwaitingCompletion {
						t.Errorf("%s is %s", id, got.Status.State)
					}
					answered[i] = append(answered[i], id)
				}
			})
		}
		<-kill
		s.Kill()
		all.Wait()
		s.Start(conf)
		for i := range callers {
			c := site.LeaderOf(t, s.URL())
			all.Go(func() {
				defer c.Close()
				for _, id := range answered[i] {
					if got, err := c.Try(site.CommandCall(task.Get, id)); err != nil {
						t.Errorf("%s was answered, but now: %v", id, site.Explain(err))
					} else if got.Status.State != task.AwaitingCompletion {
						t.Errorf("%s was answered, but is %s now", id, got.Status.State)
					}
				}
				got, err := c.Settled(doubtful[i])
				switch refusal, ok := errors.AsType[*leader.Error](err); {
				case err == nil && got.Status.State != task.AwaitingCompletion:
					t.Errorf("%s was not answered, and is %s", doubtful[i], got.Status.State)
				case err != nil && (!ok || refusal.Code != -32001):
					t.Errorf("%s was not answered, and now: %v", doubtful[i], site.Explain(err))
				}
			})
			interrupted++
		}
		all.Wait()
		s.Kill()
	}
	remembering.mu.Lock()
	defer remembering.mu.Unlock()
	for text, ids := range remembering.runs {
		if len(ids) != 1 {
			t.Errorf("%.40q… ran under the ids %v", text, ids)
		}
	}
	t.Logf("%d starts, of which %d were interrupted", len(remembering.runs), interrupted)
}
