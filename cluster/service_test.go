// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/aip-gateway/aip-gateway/cluster"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// TestBusyNode: a node carries out as many calls of a service as it may, and refuses more at once; others go on.
func TestBusyNode(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b, of := w.pair()
		release := make(chan struct{})
		b.Handle("waits", func(context.Context, int, []byte) ([]byte, error) {
			<-release
			return nil, nil
		})
		const more = 10
		ended := make(chan error, cluster.MaxServing+more)
		for range cluster.MaxServing + more {
			go func() { ended <- err0(a.Call(w.Context(), of, "waits", nil)) }()
		}
		for range more {
			if _, ok := errors.AsType[*cluster.BusyError](<-ended); !ok {
				t.Error("it is not refused")
			}
		}
		b.Handle("other", func(context.Context, int, []byte) ([]byte, error) { return []byte("q"), nil })
		if got, err := a.Call(w.Context(), of, "other", nil); err != nil || string(got) != "q" {
			t.Errorf("another service answers %q, %v", got, err)
		}
		if err := a.DrainNode(w.Context(), "b", false); err != nil {
			t.Errorf("the operator is refused: %v", err)
		}
		close(release)
		for range cluster.MaxServing {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		w.idle(a, b)
		w.end(a, b)
	})
}

// TestRequests: of a request counted by its service, little has come before the service asks for the rest; the counted
// memory is held until the reply was sent.
func TestRequests(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b, of := w.pair()
		type seen struct{ head, size int }
		got, counts, ended := make(chan seen, 1), make(chan struct{}), make(chan struct{})
		b.HandleRequests("counts", func(ctx context.Context, q *cluster.Request) ([]byte, error) {
			got <- seen{len(q.Head), q.Size}
			<-counts
			q.AtEnd(func() { close(ended) })
			return q.Body(ctx)
		})
		type reply struct {
			data []byte
			err  error
		}
		answered, takes := make(chan reply), make(chan struct{})
		reserved := func(_ context.Context, n int64) error {
			<-takes
			return nil
		}
		go func() {
			data, _, err := a.CallOwner(w.Context(), of, "counts", body(5<<20), reserved)
			answered <- reply{data, err}
		}()
		if s := <-got; s.head > cluster.MaxUnasked || s.size != 5<<20 {
			t.Errorf("%d bytes have come of %d", s.head, s.size)
		}
		bubble.Pass(10 * lease) // it waits for memory
		close(counts)
		bubble.Pass(10 * lease) // the other node, too
		select {
		case <-ended:
			t.Error("the owner counts the reply no longer")
		default:
		}
		close(takes)
		if r := <-answered; r.err != nil || !bytes.Equal(r.data, body(5<<20)) {
			t.Errorf("%d bytes, %v", len(r.data), r.err)
		}
		<-ended
		w.idle(a, b)
		w.end(a, b)
	})
}

// TestHeld: the replies of a service without its own counts are bounded, and the replies of others are not refused for
// it.
func TestHeld(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b, of := w.pair()
		large := func(context.Context, int, []byte) ([]byte, error) { return make([]byte, cluster.MaxHeld/4), nil }
		b.Handle("large", large)
		b.Handle("other", large)
		release := make(chan struct{})
		waits := func(context.Context, int64) error {
			<-release
			return nil
		}
		ended := make(chan error, 4)
		for range 4 {
			go func() {
				_, _, err := a.CallOwner(w.Context(), of, "large", nil, waits)
				ended <- err
			}()
		}
		synctest.Wait()
		if _, ok := errors.AsType[*cluster.RemoteError](err0(a.Call(w.Context(), of, "large", nil))); !ok {
			t.Error("a fifth is not refused")
		}
		if err := err0(a.Call(w.Context(), of, "other", nil)); err != nil {
			t.Errorf("another service: %v", err)
		}
		if s := b.Stats(); s.Held != cluster.MaxHeld {
			t.Errorf("%d bytes are held", s.Held)
		}
		close(release)
		for range 4 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		w.idle(a, b)
		w.end(a, b)
	})
}
