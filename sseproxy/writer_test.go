// SPDX-License-Identifier: Apache-2.0

package sseproxy

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// caller is a response keeping everything done by its writer. Times are seconds since the first call.
type caller struct {
	header http.Header
	began  time.Time
	did    []string
	fail   error // of writes
}

func (c *caller) at(t time.Time) string {
	if c.began.IsZero() {
		c.began = time.Now()
	}
	return t.Sub(c.began).Round(time.Second / 10).String()
}
func (c *caller) note(what ...string) { c.did = append(c.did, strings.Join(what, " ")) }

func (c *caller) Header() http.Header { return c.header }
func (c *caller) WriteHeader(int)     {}
func (c *caller) Write(b []byte) (int, error) {
	c.note(c.at(time.Now()), "write", strings.ReplaceAll(string(b), "\n", "|"))
	return len(b), c.fail
}
func (c *caller) FlushError() error { return c.fail }
func (c *caller) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		c.note(c.at(time.Now()), "no deadline")
	} else {
		c.note(c.at(time.Now()), "deadline", c.at(t))
	}
	return nil
}

// check compares the actions since the last check.
func (c *caller) check(t *testing.T, what string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, c.did); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
	c.did = nil
}

// begin begins a stream, and sends its head.
func begin(t *testing.T, o Options) (*caller, *Writer) {
	t.Helper()
	c := &caller{header: make(http.Header)}
	w := NewWriter(c, o)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return c, w
}

// send sends an event.
func send(t *testing.T, w *Writer) {
	t.Helper()
	w.Event(7, func(b []byte) ([]byte, string, bool) { return append(b, '0'), "", false })
	if err := w.Flush(); err != nil {
		t.Error(err)
	}
}

// TestHead: the first Flush sends the head, with the first event or alone.
func TestHead(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			events int
			want   []string
		}{
			"with an event": {1, []string{"head", "write id: 7|data: 0||", "flush", "write id: 7|data: 0||", "flush"}},
			"alone":         {0, []string{"head", "flush", "write id: 7|data: 0||", "flush"}},
		} {
			c := &flushes{header: make(http.Header)}
			w := NewWriter(c, Options{Heartbeat: time.Hour, Timeout: time.Hour, Lasting: true})
			for range test.events {
				send(t, w)
			}
			for range 2 { // the second one has nothing to send
				if err := w.Flush(); err != nil {
					t.Error(err)
				}
			}
			send(t, w)
			w.Close()
			if diff := cmp.Diff(test.want, c.did); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	})
}

// flushes is a response that notes when it is flushed.
type flushes struct {
	header http.Header
	did    []string
}

func (f *flushes) Header() http.Header { return f.header }
func (f *flushes) WriteHeader(int)     { f.did = append(f.did, "head") }
func (f *flushes) Write(b []byte) (int, error) {
	f.did = append(f.did, "write "+strings.ReplaceAll(string(b), "\n", "|"))
	return len(b), nil
}
func (f *flushes) FlushError() error {
	f.did = append(f.did, "flush")
	return nil
}

// TestPieces: a large event is sent in pieces, each with a time of its own.
func TestPieces(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		taken := 0
		c, w := begin(t, Options{Heartbeat: time.Hour, Timeout: 10 * time.Second, Lasting: true, Taken: func() {
			taken++
			time.Sleep(3 * time.Second) // of the next piece
		}})
		defer w.Close()
		large := strings.Repeat("x", 2*pieceSize)
		w.Data(func(b []byte) []byte { return append(b, large...) })
		if err := w.Flush(); err != nil {
			t.Error(err)
		}
		var sent strings.Builder
		var moved []string
		for _, did := range c.did {
			if _, written, ok := strings.Cut(did, " write "); ok {
				sent.WriteString(written)
			} else {
				moved = append(moved, did)
			}
		}
		if sent.String() != "data: "+large+"||" || taken != 2 {
			t.Errorf("%d bytes are sent, of which %d pieces were taken", sent.Len(), taken)
		}
		if diff := cmp.Diff([]string{"0s deadline 10s", "3s deadline 13s", "6s deadline 16s"}, moved); diff != "" {
			t.Errorf("the deadlines (-want +got):\n%s", diff)
		}
	})
}

// TestDeadlines: a lasting deadline is moved once a second while events are sent, and is never nearer than the timeout
// less this second when a write begins. Another one stands for a write only.
func TestDeadlines(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c, w := begin(t, Options{Heartbeat: time.Hour, Timeout: 10 * time.Second, Lasting: true})
		c.check(t, "at the beginning", "0s deadline 10s")
		for range 4 {
			time.Sleep(400 * time.Millisecond)
			send(t, w)
		}
		c.check(t, "while events are sent", "400ms write id: 7|data: 0||", "800ms write id: 7|data: 0||",
			"1.2s deadline 11.2s", "1.2s write id: 7|data: 0||", "1.6s write id: 7|data: 0||")
		time.Sleep(time.Minute)
		send(t, w)
		c.check(t, "after it has passed", "1m1.6s deadline 1m11.6s", "1m1.6s write id: 7|data: 0||")
		w.Close()
		c.check(t, "at the end", "1m1.6s no deadline")

		c, w = begin(t, Options{Heartbeat: time.Hour, Timeout: 10 * time.Second})
		send(t, w)
		w.Close()
		c.check(t, "not lasting", "0s deadline 10s", "0s no deadline",
			"0s deadline 10s", "0s write id: 7|data: 0||", "0s no deadline")
	})
}

// TestHeartbeat: a heartbeat is due when nothing else was sent for a time, and again after that time: proxies close
// streams silent for longer than the operator's time. The next Flush sends it, unless it sends something else.
func TestHeartbeat(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var due atomic.Int32
		c, w := begin(t, Options{Heartbeat: 10 * time.Second, Timeout: time.Hour, Lasting: true,
			HeartbeatDue: func() { due.Add(1) }})
		c.check(t, "at the beginning", "0s deadline 1h0m0s")
		pass := func(n int32, d time.Duration) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if due := due.Load(); due != n {
				t.Errorf("after %s, %d heartbeats were due, want %d", time.Since(c.began), due, n)
			}
		}
		flush := func() {
			t.Helper()
			if err := w.Flush(); err != nil {
				t.Error(err)
			}
		}
		pass(0, 9*time.Second)
		flush()
		c.check(t, "when none is due")
		pass(1, time.Second)
		flush()
		flush()
		c.check(t, "a heartbeat", "10s deadline 1h0m10s", "10s write :|")
		pass(2, 10*time.Second)
		flush()
		c.check(t, "the next one", "20s deadline 1h0m20s", "20s write :|")
		pass(2, 5*time.Second)
		send(t, w)
		c.check(t, "an event", "25s deadline 1h0m25s", "25s write id: 7|data: 0||")
		pass(2, 9*time.Second)
		pass(3, time.Second)
		send(t, w)
		flush()
		c.check(t, "an event instead of a heartbeat", "35s deadline 1h0m35s", "35s write id: 7|data: 0||")
		pass(3, 9*time.Second)
		w.Close()
		pass(3, time.Hour)
		c.check(t, "at the end", "44s no deadline")
	})
}

// TestNoEmptyMessage: each blank line ends an event with data. Some clients take another one for an empty message, fail
// to read it, and send their POST again, and so start the work again. So a comment is one line, and the hint for the
// time of coming back stands before the fields of the first event of any kind.
func TestNoEmptyMessage(t *testing.T) {
	o := Options{Heartbeat: time.Hour, Timeout: time.Hour, Lasting: true, Retry: 700 * time.Millisecond}
	for name, tc := range map[string]struct {
		first func(*Writer)
		want  string
	}{
		"an event": {func(w *Writer) { send(t, w) }, "retry: 700|id: 7|data: 0||"},
		"a frame of several": {func(w *Writer) {
			w.Event(7, func(b []byte) ([]byte, string, bool) { return append(b, '0'), "x", true })
		}, "retry: 700|data: 0|event: x||"},
		"nothing": {func(w *Writer) {
			w.Event(7, func(b []byte) ([]byte, string, bool) { return nil, "", false })
		}, ""},
		"an error": {func(w *Writer) {
			w.Data(func(b []byte) []byte { return append(b, '0') })
		}, "retry: 700|data: 0||"},
	} {
		c, w := begin(t, o)
		w.Comment("one line")
		tc.first(w)
		if err := w.Flush(); err != nil {
			t.Error(err)
		}
		got := ""
		for _, did := range c.did {
			if _, written, ok := strings.Cut(did, " write "); ok {
				got += written
			}
		}
		if want := ": one line|" + tc.want; got != want {
			t.Errorf("%s: %s is sent, want %s", name, got, want)
		}
		c.did = nil
		send(t, w)
		if first := c.did[len(c.did)-1]; strings.Contains(first, "retry") != (tc.want == "") {
			t.Errorf("%s: then %s is sent", name, first)
		}
		w.Close()
	}
}

// TestNotRead: after a write took too long, the stream is over, and the error gives the reason.
func TestNotRead(t *testing.T) {
	c, w := begin(t, Options{Heartbeat: time.Hour, Timeout: time.Hour, Lasting: true})
	defer w.Close()
	c.fail = os.ErrDeadlineExceeded
	w.Comment("one")
	if err := w.Flush(); !errors.Is(err, ErrNotRead) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	before := len(c.did)
	c.fail = nil
	w.Comment("two")
	if err := w.Flush(); !errors.Is(err, ErrNotRead) || len(c.did) != before || w.Buffered() != 0 {
		t.Errorf("got %v, and %q", err, c.did[before:])
	}
}
