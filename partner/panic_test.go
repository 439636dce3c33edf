// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

type panickingComplete struct{ *script }

func (panickingComplete) Complete(context.Context, *agent.Turn) error { panic("secret") }

// TestPanic: a bug of a codec fails its own task, and nothing else.
func TestPanic(t *testing.T) {
	type yield = func(agent.Report, error) bool
	bug := func(context.Context, *agent.Turn, yield) { var none []int; _ = none[len(none)] }
	breaks := func(_ context.Context, _ *agent.Turn, y yield) {
		y(agent.Report{}, task.Errorf(task.InvalidAgentResponse, "the connection broke"))
	}
	const failed = "failed: the gateway failed while it spoke with the agent; the operator finds the reason in its log"
	for _, tc := range []struct {
		name  string
		agent Agent
		then  task.Command
		want  string
	}{
		{"run", &script{run: bug, resume: bug}, task.Get, failed},
		{"resume", &script{run: breaks, resume: bug}, task.Get, "failed: the connection broke"},
		{"cancel", &script{run: hangs().run, cancel: func(context.Context, *agent.Turn) (agent.Report,
			error) {
			panic("secret")
		}},
			task.Cancel,
			"canceled: canceled here, but the agent could not be informed: the gateway failed while it spoke with the agent; " +
				"the operator finds the reason in its log"},
		{"complete", panickingComplete{answers("x")}, task.Complete, "completed: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				store := replay.NewMemory(replay.Settings{})
				e, err := Open(t.Context(), store, Options{})
				if err != nil {
					t.Fatal(err)
				}
				var log asynctest.Buffer
				p := e.Register(Config{Name: "agent", Agent: tc.agent, Terms: terms, MaxEvents: 1000, MaxBytes: 1 << 20,
					MaxTasks: 100,
					Log:      slog.New(slog.NewTextHandler(&log, nil))})
				for _, id := range []string{"t1", "t2"} {
					if _, err := p.Do(t.Context(), leader, call(task.Start, id)); err != nil {
						t.Fatal(err)
					}
					got, err := p.Do(t.Context(), leader, call(tc.then, id))
					if err != nil {
						t.Fatal(err)
					}
					said := string(got.Task.Status.State) + ": "
					for _, item := range got.Task.Status.DataItems {
						said += item.Text
					}
					if tc.then == task.Complete {
						said = string(got.Task.Status.State) + ": "
					}
					if said != tc.want {
						t.Errorf("%s is %q, want %q", id, said, tc.want)
					}
				}
				e.Close()
				store.Close()
				if s := log.String(); !strings.Contains(s, "panic_test.go") || strings.Contains(s, "secret") {
					t.Errorf("the log must show the stack, and not the payload in a panic:\n%s", s)
				}
			})
		})
	}
}
