// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/cluster"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
)

// pair starts two nodes owning shards, and returns a shard of the second one.
func (w *world) pair() (a, b *node, of int) {
	w.Helper()
	a, b = w.start("a"), w.start("b")
	bubble.Pass(20 * time.Second)
	for of = range shardCount {
		if w.Owner(of).Node == "b" {
			return a, b, of
		}
	}
	w.Fatal("the second node owns nothing")
	return nil, nil, 0
}

// body returns bytes.
func body(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(uint64(n), 1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// TestCall: a request reaches the owner, and its answer the caller, at any sizes of them and of messages.
func TestCall(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b, of := w.pair()
		for _, n := range []*node{a, b} {
			n.Handle("echo", func(_ context.Context, shard int, request []byte) ([]byte, error) {
				return fmt.Append(append([]byte(n.name), byte(shard)), string(request)), nil
			})
		}
		for _, most := range []int{1 << 10, 64 << 10, 1 << 20} {
			a.link.SetMax(most)
			b.link.SetMax(most)
			for _, size := range []int{0, 1, most - 300, most, 3*most + 7, 5 << 20} {
				reserved := int64(0)
				got, node, err := a.CallOwner(w.Context(), of, "echo", body(size), func(_ context.Context, n int64) error {
					reserved += n
					return nil
				})
				if want := append([]byte{'b', byte(of)}, body(size)...); err != nil || node != "b" || !bytes.Equal(got, want) {
					t.Errorf("%d bytes: %d from %q, %v", size, len(got), node, err)
				}
				if reserved != int64(size)+2 {
					t.Errorf("%d bytes: %d are counted", size, reserved)
				}
			}
		}
		if got, err := b.Call(w.Context(), of, "echo", nil); err != nil || got[0] != 'b' {
			t.Errorf("it has %q of itself, %v", got, err)
		}
		var nodes []string
		for answer, err := range a.Each(w.Context(), "echo", nil) {
			if nodes = append(nodes, answer.Node); err != nil || !strings.HasPrefix(string(answer.Data), answer.Node) {
				t.Errorf("%+v, %v", answer, err)
			}
		}
		if fmt.Sprint(nodes) != "[a b]" {
			t.Errorf("%v have answered", nodes)
		}
		w.idle(a, b)
		w.end(a, b)
	})
}

// idle fails the test unless no call is left.
func (w *world) idle(nodes ...*node) {
	w.Helper()
	synctest.Wait()
	for _, n := range nodes {
		if s := n.Stats(); s.Calls+s.Serving+s.Held != 0 {
			w.Errorf("%s has %+v", n.name, s)
		}
	}
}

// TestCallErrors: an error tells its origin, and whether the call may be made again.
func TestCallErrors(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b, of := w.pair()
		b.Handle("fails", func(context.Context, int, []byte) ([]byte, error) { return nil, io.ErrUnexpectedEOF })
		b.Handle("moves", func(context.Context, int, []byte) ([]byte, error) { return nil, replay.ErrFenced })
		_, err := a.Call(w.Context(), of, "fails", nil)
		if e, ok := errors.AsType[*cluster.RemoteError](err); !ok || e.Node != "b" || e.Text != io.ErrUnexpectedEOF.Error() {
			t.Errorf("the error of the service is %v", err)
		}
		moved(t, err0(a.Call(w.Context(), of, "none", nil)), false) // it may have just begun
		moved(t, err0(a.Call(w.Context(), of, "moves", nil)), true)
		_, err = a.Call(w.Context(), of, "fails", make([]byte, 256<<20+1))
		if err == nil || errors.Is(err, replay.ErrClosed) {
			t.Errorf("the error of a request that is too large is %v", err)
		}
		b.setBusy("")
		at := w.at()
		b.die()
		moved(t, err0(a.Call(w.Context(), of, "fails", nil)), false) // no process listens
		if w.at() > at+10*time.Millisecond {
			t.Errorf("it took %v", w.at()-at)
		}
		a.Handle("fails", func(context.Context, int, []byte) ([]byte, error) { return []byte("here"), nil })
		bubble.Pass(takeOver)
		if got, err := a.Call(w.Context(), of, "fails", nil); err != nil || string(got) != "here" {
			t.Errorf("after the shard was taken over: %q, %v", got, err)
		}
		w.idle(a)
		w.end(a)
	})
}

func err0(_ []byte, err error) error { return err }

// moved fails the test unless an error is for a moved shard, and tells whether the node may have begun.
func moved(t *testing.T, err error, begun bool) {
	t.Helper()
	e, ok := errors.AsType[*cluster.MovedError](err)
	if !ok || e.Begun != begun || !errors.Is(err, replay.ErrFenced) {
		t.Errorf("the error is %v (%+v)", err, e)
	}
}

// TestCallEnds: a call ends when the owner dies, is stopped, or is not heard any more; the owner learns when no caller
// waits any more.
func TestCallEnds(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(a, b *node, cancel func())
		within  time.Duration // for the caller
		over    time.Duration // for the owner, if it lives
		err     error
	}{
		"canceled": {func(_, _ *node, cancel func()) { cancel() }, 0, 0, context.Canceled},
		"dead":     {func(_, b *node, _ func()) { b.die() }, takeOver, 0, replay.ErrFenced},
		"stopped":  {func(_, b *node, _ func()) { b.link.Cut(true) }, takeOver, -1, replay.ErrFenced},
		"cut off":  {func(_, b *node, _ func()) { b.link.Disconnect(true) }, takeOver, -1, replay.ErrFenced},
		"left":     {func(_, b *node, _ func()) { b.end() }, handOver, 0, replay.ErrFenced},
		"abandoned": {func(a, _ *node, cancel func()) {
			a.link.Lose(func(m cluster.Message) bool { return true }) // the word of the cancel, too
			cancel()
		}, 0, 5 * lease, context.Canceled},
		"taken for dead": {func(a, _ *node, _ func()) { a.link.LoseWrites(true) }, takeOver, takeOver, replay.ErrFenced},
		"reply lost": {func(a, b *node, _ func()) {
			b.link.Lose(func(cluster.Message) bool { return true })
			close(a.release)
			bubble.Pass(time.Millisecond)
			b.link.Lose(nil)
		}, lease, 0, replay.ErrFenced},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				a, b, of := w.pair()
				a.release = make(chan struct{})
				over := make(chan time.Duration, 1)
				b.Handle("waits", func(ctx context.Context, _ int, _ []byte) ([]byte, error) {
					select {
					case <-ctx.Done():
					case <-a.release:
					}
					over <- w.at()
					return nil, ctx.Err()
				})
				ctx, cancel := context.WithCancel(w.Context())
				defer cancel()
				ended := make(chan error)
				go func() { ended <- err0(a.Call(ctx, of, "waits", []byte("q"))) }()
				bubble.Pass(20 * time.Second) // it is pinged
				at := w.at()
				c.happens(a, b, cancel)
				err := <-ended
				if !errors.Is(err, c.err) {
					t.Errorf("the error is %v", err)
				}
				took := w.at() - at
				if took > c.within {
					t.Errorf("it took %v", took)
				}
				if e, is := errors.AsType[*cluster.MovedError](err); name == "cut off" && (!is || e.Silent < took) {
					t.Errorf("it is said to have been silent for less than %v: %+v", took, e)
				}
				if c.over >= 0 {
					if took := <-over - at; took > c.over {
						t.Errorf("the owner went on for %v", took)
					}
				}
				a.link.Lose(nil)
				a.link.LoseWrites(false)
				b.link.Cut(false)
				b.link.Disconnect(false)
				bubble.Pass(10 * lease)
				w.idle(a)
				if name == "dead" || name == "left" {
					w.end(a)
					return
				}
				w.idle(b)
				w.end(a, b)
			})
		})
	}
}

// TestLostParts: a call with any message lost ends, and is never carried out with other bytes.
func TestLostParts(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b, of := w.pair()
		a.link.SetMax(16 << 10)
		b.link.SetMax(16 << 10)
		request, reply := body(5<<20), body(6<<20)
		b.Handle("large", func(_ context.Context, _ int, got []byte) ([]byte, error) {
			if !bytes.Equal(got, request) {
				t.Error("the request has changed")
			}
			return reply, nil
		})
		r := rand.New(rand.NewPCG(3, 4))
		failed := 0
		for range 40 {
			lose := r.IntN(1000)
			f := func(m cluster.Message) bool { lose--; return lose == 0 && m.To != "all" }
			a.link.Lose(f)
			b.link.Lose(f)
			ctx, cancel := context.WithTimeout(w.Context(), 4*lease)
			got, err := a.Call(ctx, of, "large", request)
			cancel()
			if err != nil {
				moved(t, err, true)
				failed++
			} else if !bytes.Equal(got, reply) {
				t.Error("the reply has changed")
			}
		}
		if failed == 0 {
			t.Error("nothing was lost")
		}
		a.link.Lose(nil)
		b.link.Lose(nil)
		bubble.Pass(10 * lease)
		w.idle(a, b)
		w.end(a, b)
	})
}

// TestLostPart: a call with a part, or the leave to send more, lost ends soon, although both nodes live.
func TestLostPart(t *testing.T) {
	for name, kind := range cluster.PartKinds {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				a, b, of := w.pair()
				b.Handle("large", func(context.Context, int, []byte) ([]byte, error) { return body(6 << 20), nil })
				var lost atomic.Bool
				f := func(m cluster.Message) bool { return m.Data[0] == kind && lost.CompareAndSwap(false, true) }
				a.link.Lose(f)
				b.link.Lose(f)
				ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
				defer cancel()
				at := w.at()
				_, err := a.Call(ctx, of, "large", body(5<<20))
				if took := w.at() - at; took > 3*lease || !lost.Load() {
					t.Errorf("it took %v; lost: %v", took, lost.Load())
				}
				moved(t, err, true)
				bubble.Pass(10 * lease)
				w.idle(a, b)
				w.end(a, b)
			})
		})
	}
}

// TestTime: the owner has no more time than the caller.
func TestTime(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b, of := w.pair()
		left := make(chan time.Duration, 1)
		b.Handle("waits", func(ctx context.Context, _ int, _ []byte) ([]byte, error) {
			at, _ := ctx.Deadline()
			left <- time.Until(at)
			<-ctx.Done()
			return nil, ctx.Err()
		})
		ctx, cancel := context.WithTimeout(w.Context(), 2*time.Second)
		defer cancel()
		if err := err0(a.Call(ctx, of, "waits", nil)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if l := <-left; l > 2*time.Second+lease/10 || l < time.Second {
			t.Errorf("the owner had %v", l)
		}
		w.idle(a, b)
		w.end(a, b)
	})
}

// TestReserve: a reply is not read without memory for it.
func TestReserve(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b, of := w.pair()
		b.Handle("large", func(context.Context, int, []byte) ([]byte, error) { return make([]byte, 9<<20), nil })
		full := errors.New("no memory")
		_, _, err := a.CallOwner(w.Context(), of, "large", nil, func(context.Context, int64) error { return full })
		if err != full {
			t.Error(err)
		}
		w.idle(a, b)
		w.end(a, b)
	})
}

// TestHostile: messages never sent by nodes change nothing.
func TestHostile(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b, of := w.pair()
		b.Handle("echo", func(_ context.Context, _ int, q []byte) ([]byte, error) { return q, nil })
		hostile := w.Link()
		stop, err := hostile.Listen("hostile", func(cluster.Message) {})
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(5, 6))
		for range 5000 {
			data := make([]byte, r.IntN(40))
			for i := range data {
				data[i] = byte(r.Uint32() >> (r.IntN(2) * 4))
			}
			if len(data) > 0 {
				data[0] = byte(r.IntN(14))
			}
			to := w.Owner(of).Incarnation
			hostile.Send(cluster.Message{From: "hostile", To: to, ID: r.Uint64N(9), Data: data})
		}
		bubble.Pass(10 * lease) // begun calls are abandoned
		if got, err := a.Call(w.Context(), of, "echo", []byte("q")); err != nil || string(got) != "q" {
			t.Errorf("%q, %v", got, err)
		}
		w.idle(a, b)
		stop()
		w.end(a, b)
	})
}

var _ shard.Peers = (*cluster.Cluster)(nil)
