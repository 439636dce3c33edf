// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestProgress follows a webhook from its first delivery, over retries and a dead letter, to a replay and a disabled
// endpoint, also after a restart.
func TestProgress(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer func() { w.e.Close() }()
		w.conf.Attempts = 2
		w.e.Configure(w.conf)
		l := w.task("a")
		check := func(when string, want Progress) {
			t.Helper()
			synctest.Wait()
			got, err := w.e.Progress(t.Context(), "partner", "leader", "a")
			must(t, err)
			want.Endpoint, want.Path = "https://hooks.example.org:443", "/…?…"
			if len(got) != 1 {
				t.Fatalf("%s: %+v", when, got)
			}
			if planned := !got[0].Next.IsZero(); planned != (want.Status == Failing) {
				t.Errorf("%s: the next attempt is at %s", when, got[0].Next)
			}
			if d := cmp.Diff(want, got[0], cmpopts.IgnoreFields(Progress{}, "Webhook", "Next")); d != "" {
				t.Errorf("%s: %s", when, d)
			}
		}
		if got, err := w.e.Progress(t.Context(), "partner", "leader", "a"); len(got) != 0 || err != nil {
			t.Errorf("a task without webhooks: %+v, %v", got, err)
		}
		w.hook(l.log, here, At{})
		check("before the task", Progress{Status: Delivered})
		must(t, l.move(task.Accepted))
		check("delivered", Progress{Status: Delivered, Reached: 1, LastStatus: 200})

		w.sink.set(status(503))
		must(t, l.move(task.Working))
		failing := Progress{
			Status: Failing, Reached: 1, Pending: 1, Attempts: 1,
			LastStatus: 503, LastError: "the receiver answered with status 503",
		}
		check("failing", failing)
		w.restart()
		check("failing, after a restart", failing)
		time.Sleep(time.Minute)
		failing.Status, failing.Reached, failing.Pending, failing.Dead, failing.Attempts = Dead, 2, 0, 1, 0
		check("dead", failing)

		w.sink.set(nil)
		if n, err := w.all().Replay(t.Context(), Filter{}); n != 1 || err != nil {
			t.Errorf("%d are replayed, %v", n, err)
		}
		check("replayed", Progress{Status: Delivered, Reached: 2, LastStatus: 200})

		since := time.Now().UTC().Format(time.RFC3339)
		must(t, w.all().Disable(t.Context(), here))
		must(t, l.move(task.AwaitingInput, task.Working))
		check("held", Progress{Status: Disabled, Reached: 2, Pending: 2, LastStatus: 200,
			Reason: "disabled by the operator since " + since})
	})
}
