// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

func TestSetRefuses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer w.e.Close()
		for name, c := range map[string]struct {
			hook  task.Webhook
			field string
		}{
			"no url":        {task.Webhook{}, "params.url"},
			"long url":      {task.Webhook{URL: "https://example.org/" + strings.Repeat("a", 2048)}, "params.url"},
			"scheme":        {task.Webhook{URL: "ftp://example.org/"}, "params.url"},
			"private":       {task.Webhook{URL: "https://10.0.0.1/?q=hidden"}, "params.url"},
			"user":          {task.Webhook{URL: "https://u:hidden@example.org/"}, "params.url"},
			"long token":    {task.Webhook{URL: here, Token: strings.Repeat("hidden", 4097)}, "params.token"},
			"token":         {task.Webhook{URL: here, Token: "hidden\r\nX: y"}, "params.token"},
			"credentials":   {task.Webhook{URL: here, Credentials: "hidden\n"}, "params.credentials"},
			"scheme of it":  {task.Webhook{URL: here, Scheme: "a\x00"}, "params.scheme"},
			"unknown id":    {task.Webhook{URL: here, ID: "unknown"}, "params.id"},
			"unknown state": {task.Webhook{URL: here, States: []task.State{"sleeping"}}, "params.states"},
		} {
			c.hook.Dialect = "aip"
			_, err := w.e.Set(t.Context(), taskLog("a"), c.hook, At{})
			e, ok := err.(*task.Error)
			if !ok || e.Kind != task.InvalidParams || e.Field != c.field || strings.Contains(err.Error(), "hidden") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if on, _ := w.e.Watches(t.Context(), taskLog("a")); on {
			t.Error("something was made")
		}
		for range maxHooks {
			w.hook(taskLog("a"), here, At{})
		}
		_, err := w.e.Set(t.Context(), taskLog("a"), task.Webhook{URL: here}, At{})
		if e, ok := err.(*task.Error); !ok || e.Kind != task.LimitExceeded || e.Data["limit"] != "webhooks" {
			t.Errorf("one too many: %v", err)
		}
		owner := logname.Owner(logname.OutboxOf(taskLog("b")))
		limits := limit.Limits{Total: maxOutboxes, PerLeader: maxOutboxes}
		must(t, w.e.outboxes.owners.Take(owner, maxOutboxes-1, limits))
		_, err = w.e.Set(t.Context(), taskLog("b"), task.Webhook{URL: here}, At{})
		if e, ok := err.(*task.Error); !ok || e.Kind != task.LimitExceeded || e.Data["max"] != maxOutboxes {
			t.Errorf("one task too many: %v", err)
		}
	})
}

func TestGetDeleteAfterRestart(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer func() { w.e.Close() }()
		l := w.task("a")
		ctx := t.Context()
		kinds := func(when string, want task.Kind) {
			t.Helper()
			_, err := w.e.Get(ctx, l.log, "unknown")
			for _, err := range []error{err, w.e.Delete(ctx, l.log, "unknown")} {
				if err == nil || task.KindOf(err) != want {
					t.Errorf("%s: %v", when, err)
				}
			}
		}
		kinds("without any", task.TaskNotFound)
		if got, err := w.e.Get(ctx, l.log, ""); len(got) != 0 || err != nil {
			t.Errorf("%v, %v", got, err)
		}
		must(t, w.e.Delete(ctx, l.log, ""))

		a, b := w.hook(l.log, here, At{}), w.hook(l.log, here+"2", At{})
		if a.ID == b.ID || !strings.HasPrefix(a.ID, "notification-") || a.TaskID != "a" || a.Token != "secret-token" {
			t.Errorf("%+v, %+v", a, b)
		}
		w.restart()
		kinds("of an unknown id", task.TaskNotFound)
		got, err := w.e.Get(ctx, l.log, "")
		if d := cmp.Diff([]task.Webhook{a, b}, got); d != "" || err != nil {
			t.Error(d, err)
		}
		b.States = []task.State{task.Failed}
		_, err = w.e.Set(ctx, l.log, b, At{})
		must(t, err)
		got, err = w.e.Get(ctx, l.log, b.ID)
		if d := cmp.Diff([]task.Webhook{b}, got); d != "" || err != nil {
			t.Error(d, err)
		}
		must(t, l.move(task.Accepted, task.Working))
		synctest.Wait()
		must(t, w.e.Delete(ctx, l.log, a.ID))
		must(t, l.move(task.Failed))
		time.Sleep(time.Second)
		if d := cmp.Diff([]task.State{task.Accepted, task.Working}, w.sink.history(t, here)); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]task.State{task.Failed}, w.sink.history(t, here+"2")); d != "" {
			t.Error(d)
		}
		must(t, w.e.Delete(ctx, l.log, ""))
		if got, err := w.e.Get(ctx, l.log, ""); len(got) != 0 || err != nil {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// A webhook is notified of the states entered by the task after it was set, and of no other ones.
func TestSetLate(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer w.e.Close()
		l := w.task("a")
		must(t, l.move(task.Accepted))
		w.hook(l.log, here, l.at())
		must(t, l.move(task.Working, task.AwaitingInput))
		w.hook(l.log, here+"2", l.at())
		must(t, l.move(task.Working, task.Failed))
		w.hook(l.log, here+"3", l.at())
		time.Sleep(time.Second)
		for url, want := range map[string][]task.State{
			here:       {task.Working, task.AwaitingInput, task.Working, task.Failed},
			here + "2": {task.Working, task.Failed},
			here + "3": nil,
		} {
			if d := cmp.Diff(want, w.sink.history(t, url)); d != "" {
				t.Errorf("%s: %s", url, d)
			}
		}
	})
}

// While an attempt is in flight, its webhook is replaced or deleted.
func TestChangedInFlight(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer w.e.Close()
		w.sink.set(func(n *notice) (time.Duration, int, error) {
			if n.url == here {
				return 5 * time.Second, 200, nil
			}
			return 0, 200, nil
		})
		l := w.task("a")
		a, b := w.hook(l.log, here, At{}), w.hook(l.log, here, At{})
		must(t, l.move(task.Accepted, task.Working))
		time.Sleep(2 * time.Second)
		a.URL = here + "new"
		if _, err := w.e.Set(t.Context(), l.log, a, l.at()); err != nil {
			t.Fatal(err)
		}
		must(t, w.e.Delete(t.Context(), l.log, b.ID))
		time.Sleep(time.Minute)
		synctest.Wait()
		if d := cmp.Diff([]task.State{task.Accepted, task.Working}, w.sink.history(t, here+"new")); d != "" {
			t.Error(d)
		}
		old := 0
		for _, n := range w.sink.all() {
			if n.url == here {
				old++
			}
		}
		if old > 2 {
			t.Errorf("%d came to the old URL, after the two in flight", old)
		}
		if d := w.deliveries(Filter{}); len(d) != 0 || w.all().Counts().Ready+w.all().Counts().InFlight != 0 {
			t.Errorf("left: %+v, %+v", d, w.all().Counts())
		}
	})
}

// TestNarrowedInFlight: an attempt in flight counts, also if its webhook is given other states meanwhile.
func TestNarrowedInFlight(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer w.e.Close()
		w.sink.set(func(*notice) (time.Duration, int, error) { return 5 * time.Second, 200, nil })
		l := w.task("a")
		hook := w.hook(l.log, here, At{})
		must(t, l.move(task.Accepted))
		time.Sleep(2 * time.Second)
		hook.States = []task.State{task.Accepted, task.Working}
		if _, err := w.e.Narrow(t.Context(), l.log, hook, l.at()); err != nil {
			t.Fatal(err)
		}
		must(t, l.move(task.Working))
		time.Sleep(time.Minute)
		synctest.Wait()
		if d := cmp.Diff([]task.State{task.Accepted, task.Working}, w.sink.history(t, here)); d != "" {
			t.Error(d)
		}
		if n := len(w.sink.all()); n != 2 {
			t.Errorf("%d notifications came, want 2", n)
		}
	})
}

// An outbox is dropped if its task never came. If it came, the outbox stays, even if nothing was delivered yet.
func TestTaskNeverStarted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer func() { w.e.Close() }()
		w.hook(taskLog("never"), here, At{})
		quiet, lost := w.task("quiet"), w.task("lost")
		w.hook(quiet.log, here+"quiet", At{}, task.Failed)
		w.hook(lost.log, here+"lost", At{}, task.Failed)
		must(t, quiet.move(task.Accepted, task.Working))
		lost.silent = true
		must(t, lost.move(task.Accepted, task.Working))
		for range 3 {
			time.Sleep(keepEmpty)
			w.restart()
		}
		synctest.Wait()
		if on, err := w.e.Watches(t.Context(), taskLog("never")); on || err != nil {
			t.Errorf("it is still waited for: %v, %v", on, err)
		}
		lost.silent = false
		must(t, quiet.move(task.Failed))
		must(t, lost.move(task.Failed))
		synctest.Wait()
		for _, l := range []string{"quiet", "lost"} {
			if d := cmp.Diff([]task.State{task.Failed}, w.sink.history(t, here+l)); d != "" {
				t.Errorf("%s: %s", l, d)
			}
		}
	})
}

func TestDisableAndEnable(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer func() { w.e.Close() }()
		ctx := t.Context()
		for _, bad := range []string{"", "hooks.example.org", "ftp://example.org", "https://"} {
			if err := w.all().Disable(ctx, bad); task.KindOf(err) != task.InvalidParams {
				t.Errorf("%q: %v", bad, err)
			}
		}
		must(t, w.all().Enable(ctx, "https://never.example.org"))
		since := time.Now()
		must(t, w.all().Disable(ctx, "https://HOOKS.example.org"))
		l := w.task("a")
		w.hook(l.log, here, At{})
		must(t, l.move(task.Accepted, task.Working))
		w.restart()
		time.Sleep(50 * time.Hour)
		d := w.deliveries(Filter{Status: Disabled})
		if len(w.sink.all()) != 0 || len(d) != 2 || d[0].Attempts != 0 ||
			d[0].Reason != "disabled by the operator since "+since.UTC().Format(time.RFC3339) {
			t.Errorf("%+v", d)
		}
		ends, err := w.all().Endpoints(ctx)
		must(t, err)
		want := []Endpoint{{URL: "https://hooks.example.org:443", State: "disabled", Queued: 2, Since: since,
			URLs: []EndpointURL{{Path: "/…?…", Queued: 2}}}}
		if d := cmp.Diff(want, ends); d != "" {
			t.Error(d)
		}
		must(t, w.all().Enable(ctx, here))
		synctest.Wait()
		if d := cmp.Diff([]task.State{task.Accepted, task.Working}, w.sink.history(t, here)); d != "" {
			t.Error(d)
		}
		w.restart()
		if _, is := w.e.queue.Disabled("https://hooks.example.org:443"); is {
			t.Error("it is disabled again")
		}
	})
}

func TestUnknownDialectWaits(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer w.e.Close()
		l := w.task("a")
		_, err := w.e.Set(t.Context(), l.log, task.Webhook{URL: here, Dialect: "later"}, At{})
		must(t, err)
		must(t, l.move(task.Accepted))
		time.Sleep(time.Hour)
		if d := w.deliveries(Filter{}); len(d) != 1 || d[0].Attempts != 0 || len(w.sink.all()) != 0 {
			t.Errorf("%+v", d)
		}
		if n := strings.Count(w.log.String(), "dialect"); n != 2 { // one line, with the word twice
			t.Errorf("the log says %s", w.log)
		}
		w.conf.Dialects = func(*task.Webhook, string) translate.Notifier { return plain{} }
		w.e.Configure(w.conf)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if d := cmp.Diff([]task.State{task.Accepted}, w.sink.history(t, here)); d != "" {
			t.Error(d)
		}
	})
}

// TestStoppedLeaderWaits stops the webhooks of a Leader for an hour.
func TestStoppedLeaderWaits(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer w.e.Close()
		var stopped atomic.Bool
		w.conf.Stopped = func(string, string) bool { return stopped.Load() }
		w.e.Configure(w.conf)
		l := w.task("a")
		w.hook(l.log, here, At{})
		must(t, l.move(task.Accepted))
		synctest.Wait()
		stopped.Store(true)
		must(t, l.move(task.Working, task.Failed))
		time.Sleep(time.Hour)
		got := w.deliveries(Filter{})
		if len(got) != 2 || got[0].Status != Disabled || got[0].Attempts != 0 || len(w.sink.all()) != 1 {
			t.Errorf("the deliveries are %+v, and %d notifications were sent", got, len(w.sink.all()))
		}
		stopped.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []task.State{task.Accepted, task.Working, task.Failed}
		if d := cmp.Diff(want, w.sink.history(t, here)); d != "" {
			t.Error(d)
		}
	})
}

// A taskId used again, after its task has ended and its log was dropped, is delivered again.
func TestTaskIDUsedAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer w.e.Close()
		l := w.task("a")
		w.hook(l.log, here, At{})
		must(t, l.move(task.Accepted, task.Working, task.Failed))
		synctest.Wait()
		time.Sleep(time.Hour)
		l.fold, l.silent = task.Fold{}, true
		first := len(w.sink.all())
		// The store still has the old log, so this one is delivered without being stored.
		again := task.Task{ID: "a", Status: task.Status{State: task.Accepted, ChangedAt: time.Now()}}
		w.e.Notify(t.Context(), l.log, []Change{{Seq: 1, Task: &again}})
		synctest.Wait()
		got := w.sink.all()
		if len(got) != first+1 || got[first].id == got[0].id {
			t.Errorf("%d were sent", len(got)-first)
		}
	})
}

func TestPages(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer w.e.Close()
		must(t, w.all().Disable(t.Context(), here))
		want := 0
		for i := range 7 {
			l := w.task(string(rune('a' + i)))
			w.hook(l.log, here, At{})
			w.hook(l.log, here+"2", At{}, task.Working)
			must(t, l.move(task.Accepted, task.Working))
			want += 3
		}
		seen := make(map[string]bool)
		f := Filter{Limit: 2}
		for pages := 0; ; pages++ {
			got, next, err := w.all().Deliveries(t.Context(), f)
			must(t, err)
			if len(got) > 2 || pages > want {
				t.Fatalf("page %d has %d", pages, len(got))
			}
			for _, d := range got {
				if seen[d.ID] || d.Partner != "partner" || d.Leader != "leader" {
					t.Errorf("%+v", d)
				}
				seen[d.ID] = true
			}
			if f.After = next; next == "" {
				break
			}
		}
		if len(seen) != want {
			t.Errorf("%d of %d", len(seen), want)
		}
		for _, bad := range []string{"!", "YQ", "MS4yIDAgeA.", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5LjAgMCB4"} {
			if _, _, err := w.all().Deliveries(t.Context(), Filter{After: bad}); task.KindOf(err) != task.InvalidParams {
				t.Errorf("%q: %v", bad, err)
			}
		}
	})
}
