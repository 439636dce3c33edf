// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// TestReportedIsKept: a report answered to an agent is stored, and a resumed turn says so, whether or not a caller had
// seen the task before. A report not taken by the task is not answered.
func TestReportedIsKept(t *testing.T) {
	for name, tc := range map[string]struct {
		after   time.Duration // when the agent reports; a caller sees the task after a second
		reports []agent.Report
		stored  int
		want    task.State
	}{
		"it works":                       {0, []agent.Report{{State: task.Working}}, 1, task.Working},
		"it works, as a caller has seen": {2 * time.Second, []agent.Report{{State: task.Working}}, 1, task.Working},
		"it asks, and may work on": {0, []agent.Report{{State: task.AwaitingInput, SelfResuming: true}}, 1,
			task.AwaitingInput},
		"it says too much": {0, []agent.Report{{State: task.Working}, {Chunks: []task.Chunk{large}}}, 1,
			task.None},
		"it says something after the end": {0, []agent.Report{{State: task.Failed}, {State: task.Working}}, 1, task.None},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				store := replay.NewMemory(replay.Settings{})
				defer store.Close()
				config := Config{Name: "agent", Terms: terms, MaxEvents: 1000, MaxBytes: 1 << 20, MaxTasks: 100,
					Log: slog.New(slog.DiscardHandler)}
				stored := 0
				first := &script{run: func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
					time.Sleep(tc.after)
					for _, rep := range tc.reports {
						rep.Stored = func() { stored++ }
						if !yield(rep, nil) {
							return
						}
					}
					<-ctx.Done()
				}}
				var resumed task.State
				second := &script{resume: func(ctx context.Context, turn *agent.Turn, _ func(agent.Report, error) bool) {
					resumed = turn.Reported
					<-ctx.Done()
				}}
				for _, fake := range []*script{first, second} {
					e, err := Open(t.Context(), store, Options{})
					if err != nil {
						t.Fatal(err)
					}
					config.Agent = fake
					p := e.Register(config)
					if fake == first {
						c := call(task.Start, "t1")
						c.Terms.Response = time.Second
						if _, err := p.Do(t.Context(), leader, c); err != nil {
							t.Fatal(err)
						}
					}
					time.Sleep(5 * time.Second)
					synctest.Wait()
					p.Unregister()
					e.Close()
				}
				if stored != tc.stored || resumed != tc.want {
					t.Errorf("%d reports are stored, want %d; the turn that is resumed says %q, want %q", stored, tc.stored,
						resumed, tc.want)
				}
			})
		})
	}
}

// large is a piece exceeding the limit of the task.
var large = task.Chunk{Product: task.Product{ID: "p",
	DataItems: []task.DataItem{task.Text(string(make([]byte, 2<<20)))}}}
