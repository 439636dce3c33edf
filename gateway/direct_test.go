// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// behind is an agent speaking AIP. It reports its work, and finishes a second later.
type behind struct{ partner.Agent }

func (behind) Run(context.Context, *agent.Turn, bool) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		if yield(agent.Report{State: task.Working, Verbatim: true}, nil) {
			bubble.Pass(time.Second)
			yield(agent.Report{State: task.AwaitingCompletion, Verbatim: true}, nil)
		}
	}
}

func (behind) Complete(context.Context, *agent.Turn) error { return nil }

// TestDirect: a caller of AIP is answered as soon as an agent of AIP has answered, and others when it has finished.
// With AutoComplete, a task started by a caller of AIP is completed then; callers of other dialects have this in the
// dialect.
func TestDirect(t *testing.T) {
	for name, c := range map[string]struct {
		direct, complete bool
		first, last      task.State
	}{
		"AIP":                                 {true, false, task.Working, task.AwaitingCompletion},
		"AIP, with completion auto":           {true, true, task.Working, task.Completed},
		"another dialect":                     {false, false, task.AwaitingCompletion, task.AwaitingCompletion},
		"another dialect and completion auto": {false, true, task.AwaitingCompletion, task.AwaitingCompletion},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				g := newGateway(t, func(conf *gateway.Config) { conf.Partner.Agent, conf.AutoComplete = behind{}, c.complete })
				do := func(command task.Command) task.State {
					t.Helper()
					call := gateway.Call{Leader: "leader"}
					call.Message, call.Direct = task.Message{Command: command, TaskID: "t", SenderID: "leader"}, c.direct
					r, err := g.Execute(t.Context(), &call, nil)
					if err != nil {
						t.Fatal(err)
					}
					return r.Task.Status.State
				}
				if got := do(task.Start); got != c.first {
					t.Errorf("the start is answered with %s, want %s", got, c.first)
				}
				bubble.Pass(2 * time.Second)
				if got := do(task.Get); got != c.last {
					t.Errorf("the task has become %s, want %s", got, c.last)
				}
			})
		})
	}
}
