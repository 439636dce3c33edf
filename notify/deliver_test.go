// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/notify/sign"
	"github.com/aip-gateway/aip-gateway/notify/sign/signtest"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

func TestDelivers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer func() { w.e.Close() }()
		secret := sign.GenerateHMAC()
		key, err := sign.Parse(secret)
		must(t, err)
		w.conf.Keys = sign.Keys{key}
		w.e.Configure(w.conf)

		l := w.task("a")
		if on, err := w.e.Watches(t.Context(), l.log); on || err != nil {
			t.Fatalf("watched before anything was set: %v, %v", on, err)
		}
		w.hook(l.log, here, At{}) // before the task exists
		w.hook(l.log, here+"2", At{}, task.Working, task.Completed)
		if on, err := w.e.Watches(t.Context(), l.log); !on || err != nil {
			t.Fatalf("not watched: %v, %v", on, err)
		}
		for _, s := range whole {
			must(t, l.move(s))
			if s == task.Working {
				must(t, l.say("piece "))
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if d := cmp.Diff(whole, w.sink.history(t, here)); d != "" {
			t.Error(d)
		}
		some := []task.State{task.Working, task.Working, task.Completed}
		if d := cmp.Diff(some, w.sink.history(t, here+"2")); d != "" {
			t.Error(d)
		}
		seen := make(map[string]bool)
		for _, n := range w.sink.all() {
			h := n.header
			signature, timestamp := h.Get("webhook-signature"), h.Get("webhook-timestamp")
			if err := signtest.Verify(signature, n.id, timestamp, n.body, n.at, secret); err != nil {
				t.Error(err)
			}
			if h.Get("X-Token") != "secret-token" || h.Get("User-Agent") != "aip-gateway" ||
				len(h.Get("traceparent")) != 55 {
				t.Errorf("header %v", h)
			}
			if seen[n.id] || !strings.HasPrefix(n.id, "msg_") {
				t.Errorf("webhook-id %q", n.id)
			}
			seen[n.id] = true
		}
		last := w.sink.all()[len(w.sink.all())-1]
		body := string(last.body)
		if !strings.Contains(body, "piece piece ") || strings.Contains(body, "statusHistory") {
			t.Errorf("the last body is %s", last.body)
		}

		head, err := w.store.Head(t.Context(), logname.OutboxOf(l.log))
		must(t, err)
		if head.Bytes > 1000 || head.Last == 0 || !head.Ended.IsZero() { // of two webhooks, and no notification
			t.Errorf("when all is delivered, the outbox is %+v", head)
		}
		time.Sleep(keepEnded + time.Minute)
		synctest.Wait()
		if head, err = w.store.Head(t.Context(), logname.OutboxOf(l.log)); err != nil || head.Ended.IsZero() {
			t.Errorf("a day later it has not ended: %+v, %v", head, err)
		}
		if w.e.outboxes.owners.Total() != 0 {
			t.Error("it is still counted")
		}
		_, err = w.e.Set(t.Context(), l.log, task.Webhook{URL: here, Dialect: "aip"}, At{})
		if task.KindOf(err) != task.UnsupportedOperation {
			t.Errorf("then to set a webhook: %v", err)
		}
	})
}

// The path of a failing attempt: the times and the number of its repetitions, its end, and its replay.
func TestRetriesThenDeadThenReplayed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer func() { w.e.Close() }()
		w.sink.set(status(404)) // no breaker minds it
		l := w.task("a")
		h := w.hook(l.log, here, At{})
		must(t, l.move(task.Accepted, task.Working))
		time.Sleep(7 * time.Second)
		d := w.deliveries(Filter{})
		if len(d) != 2 || d[0].Status != Failing || d[0].LastStatus != 404 ||
			d[1].Status != Pending || d[1].Attempts != 0 {
			t.Fatalf("%+v", d)
		}
		time.Sleep(36 * time.Hour)
		synctest.Wait()
		got := w.sink.all()
		if len(got) != 11 { // the second one waited behind it, and gets one attempt
			t.Fatalf("%d attempts", len(got))
		}
		for i := range 9 {
			gap := got[i+1].at.Sub(got[i].at)
			if gap < steps[i]*8/10 || gap > steps[i]*12/10 || got[i].id != got[0].id || got[i].state != task.Accepted {
				t.Errorf("attempt %d came after %v", i+2, gap)
			}
			if got[i].header.Get("traceparent") != got[0].header.Get("traceparent") {
				t.Error("the trace has changed")
			}
		}
		dead := w.deliveries(Filter{Status: Dead, Host: "hooks.example.org"})
		if len(dead) != 2 || dead[0].ID != got[0].id || dead[0].Attempts != 10 ||
			dead[1].Attempts != 1 || dead[1].Webhook != h.ID {
			t.Fatalf("dead: %+v", dead)
		}
		if c := w.all().Counts(); c.Dead != 2 || c.Failed != 11 || c.Delivered != 0 {
			t.Errorf("%+v", c)
		}
		if s := w.log.String(); strings.Contains(s, "secret") || strings.Count(s, "dead letter") != 2 {
			t.Errorf("the log says %s", s)
		}

		w.restart()
		w.sink.set(nil)
		if n, err := w.all().Replay(t.Context(), Filter{IDs: []string{"msg_other"}}); n != 0 || err != nil {
			t.Errorf("replayed %d, %v", n, err)
		}
		must(t, l.move(task.Failed))
		n, err := w.all().Replay(t.Context(), Filter{Task: "a"})
		if n != 2 || err != nil {
			t.Fatalf("replayed %d, %v", n, err)
		}
		synctest.Wait()
		var ids []string
		for _, n := range w.sink.all()[11:] {
			ids = append(ids, n.id)
		}
		if len(ids) != 3 || !(strings.Contains(strings.Join(ids, " "), dead[0].ID+" "+dead[1].ID)) {
			t.Errorf("replayed %v", ids)
		}
		if d := w.deliveries(Filter{}); len(d) != 0 {
			t.Errorf("left: %+v", d)
		}
	})
}

func TestAnswers(t *testing.T) {
	date := time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC) // the bubble begins an hour earlier
	for name, c := range map[string]struct {
		status   int
		err      error
		delay    time.Duration
		after    string
		attempts int           // within the first 9 seconds
		next     time.Duration // at least this long until the next one then
		disabled bool
		text     string
	}{
		"ok":         {status: 200, attempts: 1},
		"no content": {status: 204, attempts: 1},
		"redirect":   {status: 302, attempts: 4, text: "status 302"},
		"gone":       {status: 410, attempts: 1, disabled: true, text: "status 410"},
		"broken":     {status: 500, attempts: 4, text: "status 500"},
		"too many":   {status: 429, attempts: 1, after: "3600", next: time.Hour - 10*time.Second, text: "status 429"},
		"a date": {
			status: 503, attempts: 1, after: date.Format(http.TimeFormat), next: 59 * time.Minute, text: "status 503",
		},
		"far too long": {status: 503, attempts: 1, after: "99999999999", next: 23 * time.Hour, text: "status 503"},
		"nonsense":     {status: 503, attempts: 4, after: "soon", text: "status 503"},
		"not asked":    {status: 404, attempts: 4, after: "3600", text: "status 404"},
		"reset":        {err: errReset, attempts: 4, text: "could not be reached"},
		"hangs":        {delay: time.Hour, attempts: 0, text: ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWorld(t, memory())
				defer w.e.Close()
				w.sink.after = http.Header{"Retry-After": {c.after}}
				n := 0
				w.sink.set(func(*notice) (time.Duration, int, error) { n++; return c.delay, c.status, c.err })
				l := w.task("a")
				w.hook(l.log, here, At{})
				must(t, l.move(task.Accepted))
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if c.delay == 0 && n != c.attempts {
					t.Errorf("%d attempts, want %d", n, c.attempts)
				}
				d := w.deliveries(Filter{})
				switch {
				case c.text == "" && c.delay == 0:
					if len(d) != 0 {
						t.Errorf("%+v", d)
					}
					return
				case c.delay > 0:
					time.Sleep(6 * time.Second)
					synctest.Wait()
					d = w.deliveries(Filter{})
					if len(d) != 1 || d[0].Attempts != 1 || !strings.Contains(d[0].LastError, "within 15s") {
						t.Errorf("%+v", d)
					}
					return
				case len(d) != 1 || !strings.Contains(d[0].LastError, c.text):
					t.Fatalf("%+v", d)
				case c.disabled != (d[0].Status == Disabled):
					t.Errorf("%+v", d[0])
				case !c.disabled && time.Until(d[0].Next) < c.next:
					t.Errorf("the next attempt is in %v", time.Until(d[0].Next))
				}
			})
		})
	}
}

// A webhook disabled by a 410 waits, is enabled when it is set again, and continues from its place.
func TestGoneThenSetAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer w.e.Close()
		w.sink.set(status(410))
		l := w.task("a")
		h := w.hook(l.log, here, At{})
		must(t, l.move(task.Accepted, task.Working))
		time.Sleep(time.Hour)
		if n := len(w.sink.all()); n != 1 {
			t.Errorf("%d attempts", n)
		}
		w.sink.set(nil)
		if _, err := w.e.Set(t.Context(), l.log, h, l.at()); err != nil {
			t.Fatal(err)
		}
		must(t, l.move(task.Failed))
		synctest.Wait()
		if d := cmp.Diff([]task.State{task.Accepted, task.Working, task.Failed}, w.sink.history(t, here)); d != "" {
			t.Error(d)
		}

		// Its queue is not kept for ever.
		w.sink.set(status(410))
		l2 := w.task("b")
		w.hook(l2.log, here, At{})
		must(t, l2.move(task.Accepted, task.Working))
		time.Sleep(keepDead + time.Minute)
		synctest.Wait()
		if d := w.deliveries(Filter{}); len(d) != 0 {
			t.Errorf("%+v", d)
		}
	})
}

func TestTraceOfTheChange(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer w.e.Close()
		l := w.task("a")
		l.silent = true
		w.hook(l.log, here, At{})
		w.sink.set(func(*notice) (time.Duration, int, error) { return 0, 410, nil })
		must(t, l.move(task.Accepted))
		ctx := trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled,
		}))
		w.e.Notify(ctx, l.log, []Change{{Seq: 1, Task: l.fold.Task()}})
		synctest.Wait()
		want := "00-01000000000000000000000000000000-0200000000000000-01"
		if got := w.sink.all(); len(got) != 1 || got[0].header.Get("traceparent") != want {
			t.Errorf("%+v", got)
		}
		line := "a webhook is disabled: its receiver wants no more notifications"
		id := "trace_id=01000000000000000000000000000000"
		if s := w.log.String(); !strings.Contains(s, line) || !strings.Contains(s, id) {
			t.Errorf("the log has no line with the trace: %s", s)
		}
	})
}

// An unknown endpoint is attempted soon, whether the hanging endpoints are as new as it is or have failed before.
func TestNewEndpointsDoNotWait(t *testing.T) {
	for name, head := range map[string]time.Duration{"as new": 0, "failed before": 40 * time.Second} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWorld(t, memory())
				defer w.e.Close()
				const live = "https://live.example.org/"
				w.sink.set(func(n *notice) (time.Duration, int, error) {
					if n.url == live {
						return 0, 200, nil
					}
					return time.Hour, 200, nil
				})
				for i := range 800 {
					d := w.task(fmt.Sprint("dead", i))
					w.hook(d.log, fmt.Sprintf("https://dead%d.example.org/", i), At{})
					must(t, d.move(task.Accepted))
				}
				time.Sleep(head)
				l := w.task("live")
				w.hook(l.log, live, At{})
				must(t, l.move(task.Accepted))
				time.Sleep(3 * time.Second)
				if d := cmp.Diff([]task.State{task.Accepted}, w.sink.history(t, live)); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

// A thousand hanging or dead endpoints do not delay the working one.
func TestDeadEndpointsDelayNoOther(t *testing.T) {
	for name, hang := range map[string]bool{"hang": true, "refuse": false} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWorld(t, memory())
				defer w.e.Close()
				const live = "https://live.example.org/"
				w.sink.set(func(n *notice) (time.Duration, int, error) {
					switch {
					case n.url == live:
						return 0, 200, nil
					case hang:
						return time.Hour, 200, nil
					}
					return 0, 0, errReset
				})
				l := w.task("live")
				w.hook(l.log, live, At{})
				must(t, l.move(task.Accepted))
				synctest.Wait()
				for i := range 1000 {
					for j := range 2 {
						d := w.task(fmt.Sprint("dead", i, "-", j))
						w.hook(d.log, fmt.Sprintf("https://dead%d.example.org/", i), At{})
						must(t, d.move(task.Accepted))
					}
				}
				time.Sleep(5 * time.Second) // all slots are taken by now
				want := []task.State{task.Accepted}
				for i := range 100 {
					s := []task.State{task.Working, task.AwaitingInput}[i%2]
					want = append(want, s)
					must(t, l.move(s))
					synctest.Wait() // and no time passes
					if got := len(w.sink.history(t, live)); got != len(want) {
						t.Fatalf("%d of %d were delivered", got, len(want))
					}
					time.Sleep(100 * time.Millisecond)
				}
				time.Sleep(4 * time.Minute)
				synctest.Wait()
				if d := cmp.Diff(want, w.sink.history(t, live)); d != "" {
					t.Error(d)
				}
				if c := w.all().Counts(); c.Delivered != 101 || c.Ready > 4096+1001 || c.InFlight > 1024 {
					t.Errorf("%+v", c)
				}
				ends, err := w.all().Endpoints(t.Context())
				must(t, err)
				open := 0
				for _, p := range ends {
					if p.State == Paused || p.State == TryingOne {
						open++
					}
				}
				if len(ends) != 1001 || open < 900 {
					t.Errorf("%d endpoints, %d of them open", len(ends), open)
				}
				// None of them has spent its attempts for the sake of the others.
				w.sink.set(nil)
				time.Sleep(26 * time.Hour)
				synctest.Wait()
				if d := w.deliveries(Filter{}); len(d) != 0 {
					t.Errorf("%d are left, the first %+v", len(d), d[0])
				}
			})
		})
	}
}

// Far more is due than memory holds.
func TestBacklog(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer w.e.Close()
		must(t, w.all().Disable(t.Context(), here))
		const tasks = 1000
		for i := range tasks {
			l := w.task(fmt.Sprint(i))
			w.hook(l.log, fmt.Sprint(here, i), At{})
			must(t, l.move(task.Accepted, task.Working))
		}
		time.Sleep(80 * time.Minute)
		if n := len(w.sink.all()); n != 0 {
			t.Fatalf("%d were sent to a disabled endpoint", n)
		}
		w.sink.set(func(*notice) (time.Duration, int, error) { return 10 * time.Millisecond, 200, nil })
		must(t, w.all().Enable(t.Context(), here))
		time.Sleep(time.Minute)
		synctest.Wait()
		for i := range tasks {
			got := w.sink.history(t, fmt.Sprint(here, i))
			if d := cmp.Diff([]task.State{task.Accepted, task.Working}, got); d != "" {
				t.Fatalf("task %d: %s", i, d)
			}
		}
		if c := w.e.queue.Counts(); c.Outboxes+c.Ready+c.InFlight != 0 {
			t.Errorf("left in memory: %+v", c)
		}
	})
}
