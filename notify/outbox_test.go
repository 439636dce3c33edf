// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// weighed is a store that counts the bytes that it is given.
type weighed struct {
	replay.Store
	bytes atomic.Int64
}

func (w *weighed) Append(ctx context.Context, a replay.Append) error {
	n := len(a.Metadata)
	for _, r := range a.Records {
		n += len(r)
	}
	w.bytes.Add(int64(n))
	return w.Store.Append(ctx, a)
}

// The URL and the secrets of a webhook are written when it is set, and not whenever a notification is delivered; and
// yet the outbox of a task that runs for long stays small.
func TestWebhooksAreWrittenOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &weighed{Store: memory()}
		w := newWorld(t, s)
		defer func() { w.e.Close() }()
		l := w.task("a")
		var want []task.Webhook
		for range maxHooks {
			hook := task.Webhook{URL: here, Token: strings.Repeat("t", 4096), Dialect: "aip"}
			h, err := w.e.Set(t.Context(), l.log, hook, At{})
			must(t, err)
			want = append(want, h)
		}
		s.bytes.Store(0)
		must(t, l.move(task.Accepted, task.Working, task.AwaitingCompletion))
		time.Sleep(time.Minute)
		synctest.Wait()
		n := s.bytes.Load()
		t.Logf("a start writes %d bytes", n)
		if n > 512<<10 {
			t.Errorf("a start with %d webhooks writes %d bytes", maxHooks, n)
		}
		for range 500 {
			must(t, l.move(task.Working, task.AwaitingInput))
			synctest.Wait()
		}
		head, err := s.Head(t.Context(), logname.OutboxOf(l.log))
		must(t, err)
		if most := int64(2*maxHooks*(4096+256) + 4096); head.Bytes > most {
			t.Errorf("%d bytes are kept, want %d at most", head.Bytes, most)
		}
		w.restart()
		got, err := w.e.Get(t.Context(), l.log, "")
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after all that (-want +got):\n%s", diff)
		}
	})
}

// readCounter is a store that counts how often the metadata of a log is read.
type readCounter struct {
	replay.Store
	heads atomic.Int64
}

func (r *readCounter) Head(ctx context.Context, log string) (replay.Head, error) {
	if log[0] == logname.Outbox {
		r.heads.Add(1)
	}
	return r.Store.Head(ctx, log)
}

// An outbox in use is read once, until the store may hold something else: then every outbox is read again.
func TestOutboxIsReadOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &readCounter{Store: memory()}
		w := newWorld(t, s)
		defer func() { w.e.Close() }()
		l := w.task("a")
		w.hook(l.log, here, At{})
		synctest.Wait()
		s.heads.Store(0)
		must(t, l.move(whole[:4]...))
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff(whole[:4], w.sink.history(t, here)); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		if n := s.heads.Load(); n != 0 {
			t.Errorf("an outbox in use was read %d times", n)
		}
		w.e.reconciler.request()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := s.heads.Load(); n != 1 {
			t.Errorf("after the store failed, the outbox was read %d times", n)
		}
	})
}

// What an earlier build has written, with the webhooks in the metadata, is read, and written in the present form.
func TestWebhooksInTheMetadata(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer func() { w.e.Close() }()
		l := w.task("a")
		old, err := json.Marshal(map[string]any{
			"seen": 0, "made": time.Now(), "epoch": "x", "first": 1,
			"configs": []any{map[string]any{
				"webhook": task.Webhook{ID: "mine", URL: here, Token: "secret-token", Dialect: "aip"},
				"from":    0, "cursor": 0,
			}},
		})
		must(t, err)
		must(t, w.store.Append(t.Context(), replay.Append{
			Log: logname.OutboxOf(l.log), Metadata: old, DueAt: time.Now().Add(time.Hour),
		}))
		w.restart()
		must(t, l.move(task.Accepted, task.Working))
		time.Sleep(time.Minute)
		synctest.Wait()
		w.restart()
		must(t, l.move(task.AwaitingInput))
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []task.State{task.Accepted, task.Working, task.AwaitingInput}
		if diff := cmp.Diff(want, w.sink.history(t, here)); diff != "" {
			t.Errorf("it got (-want +got):\n%s", diff)
		}
		head, err := w.store.Head(t.Context(), logname.OutboxOf(l.log))
		must(t, err)
		if strings.Contains(string(head.Metadata), "secret-token") ||
			w.sink.all()[2].header.Get("X-Token") != "secret-token" {
			t.Errorf("the metadata is %s", head.Metadata)
		}
	})
}

// Stores of earlier builds have Confirm as a suffix of the dialect's name, in the record of a webhook and, earlier
// still, in the note. It is read as what it is now, and written so when the webhook is written next.
func TestConfirmAsASuffix(t *testing.T) {
	const hook = `{"id":"mine","url":"https://hooks.example.org/x?secret=query","token":"secret-token",` +
		`"dialect":"a2a/1.0 confirm","states":["working"]}`
	for name, stored := range map[string]struct {
		metadata string
		records  [][]byte
	}{
		"record": {`{"seen":0,"made":"2026-11-22T11:02:15.661141964Z","epoch":"GHFJPXOVJ4VW","first":2,` +
			`"configs":[{"kept":1,"bytes":134,"from":0,"cursor":1}]}`, [][]byte{[]byte(hook)}},
		"metadata": {`{"seen":0,"made":"2026-11-22T11:02:15.661141964Z","epoch":"GHFJPXOVJ4VW","first":1,` +
			`"configs":[{"webhook":` + hook + `,"from":0,"cursor":0}]}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				store, log := memory(), taskLog("a")
				must(t, store.Append(t.Context(), replay.Append{
					Log: logname.OutboxOf(log), Metadata: []byte(stored.metadata), Records: stored.records,
					DueAt: time.Now().Add(time.Hour),
				}))
				w := newWorld(t, store)
				defer func() { w.e.Close() }()
				want := task.Webhook{
					ID: "mine", TaskID: "a", URL: here, Token: "secret-token", Dialect: "a2a/1.0", Confirm: true,
					States: []task.State{task.Working},
				}
				for range 2 {
					got, err := w.e.Get(t.Context(), log, "mine")
					if diff := cmp.Diff([]task.Webhook{want}, got); diff != "" || err != nil {
						t.Errorf("%v (-want +got):\n%s", err, diff)
					}
					_, err = w.e.Set(t.Context(), log, want, At{})
					must(t, err)
					w.restart()
				}
				_, _, records, err := store.Load(t.Context(), logname.OutboxOf(log))
				must(t, err)
				s := string(records[len(records)-1].Data)
				if !strings.Contains(s, `"dialect":"a2a/1.0","confirm":true`) {
					t.Errorf("it is written as %s", s)
				}
			})
		})
	}
}
