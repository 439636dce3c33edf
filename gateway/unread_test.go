// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// pieces is an agent with a number of pieces of a text, each of so many bytes, and then a request for input.
type pieces struct {
	partner.Agent
	n, size int
}

func (a pieces) Run(_ context.Context, _ *agent.Turn, _ bool) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		for i := range a.n {
			product := task.Product{ID: "p", DataItems: []task.DataItem{task.Text(strings.Repeat("x", a.size))}}
			piece := task.Chunk{Append: i > 0, Product: product}
			if !yield(agent.Report{State: task.Working, Chunks: []task.Chunk{piece}, Revision: fmt.Sprint(i)}, nil) {
				return
			}
		}
		yield(agent.Report{State: task.AwaitingInput, Revision: "end"}, nil)
	}
}

// unread is a connection with a caller reading nothing. So it takes no large frame.
type unread struct {
	record
	flushes chan<- int // gets the number of bytes of each Flush
	once    sync.Once
	aborted chan struct{}
	begun   atomic.Bool // Flush was called
}

var errAborted = errors.New("aborted")

func (s *unread) Flush() error {
	s.begun.Store(true)
	if s.Buffered() < 32<<10 {
		s.line = nil
		return nil
	}
	s.flushes <- s.Buffered()
	<-s.aborted
	return errAborted
}

func (s *unread) Abort() { s.once.Do(func() { close(s.aborted) }) }

// followers opens streams of a settled task.
func followers(t *testing.T, store replay.Store, a pieces, memory int64, n int) (
	process *gateway.Process, open func() *gateway.Stream,
) {
	process = new(gateway.Process)
	g := newGatewayOver(t, store, func(c *gateway.Config) {
		c.Process, c.Callers, c.Partner.Agent = process, []translate.Server{aip.Server()}, a
		c.Partner.MaxBytes, c.Limits.Bytes = 16<<20, 1<<20
		c.Streaming.Max, c.Streaming.MaxPerLeader, c.Streaming.Patience = n, n, time.Minute
		c.Memory, c.MemoryPatience = limit.Limits{Total: 2 * memory, PerLeader: memory}, time.Minute
	})
	f := &front{t: t, g: g, peer: identity.Peer{Proof: identity.ByToken, Kind: "test", ID: "leader"}}
	first := f.send(t.Context(), "stream", "start")
	first.RunFor(&record{}, time.Millisecond)
	first.Close()
	return process, func() *gateway.Stream {
		return f.sendMessage(t.Context(), "stream", "re-stream", "t", `,"commandParams":{"lastEventSeq":2}`)
	}
}

// runUnread runs n streams with callers reading nothing, until they are aborted. flushes gets the number of bytes of
// each Flush.
func runUnread(all *sync.WaitGroup, open func() *gateway.Stream, n int) (list []*unread, flushes <-chan int) {
	sent := make(chan int, 100*n)
	for range n {
		s, out := open(), &unread{flushes: sent, aborted: make(chan struct{})}
		list = append(list, out)
		all.Go(func() {
			s.Run(out)
			s.Close()
		})
	}
	return list, sent
}

// TestCallersThatNeverRead: streams with callers reading nothing hold the memory of their Leader, until its other
// streams need it: then the longest stuck ones are cut.
func TestCallersThatNeverRead(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const n, count = 40, 20
		process, open := followers(t, replay.NewMemory(replay.Settings{}), pieces{n: count, size: 200 << 10}, 2<<20, n+2)
		var all sync.WaitGroup
		list, _ := runUnread(&all, open, n)
		synctest.Wait()
		if process.Memory.Waiting() == 0 {
			t.Error("no stream waits for memory: there are too few")
		}
		for i, out := range list {
			if !out.begun.Load() {
				t.Errorf("stream %d waits before the head of its answer is sent", i)
			}
		}
		for range 3 {
			s, r, began := open(), new(record), time.Now()
			s.RunFor(r, time.Millisecond)
			if took := time.Since(began); strings.Count(r.sent.String(), "product-chunk") != count || took > 10*time.Second {
				t.Errorf("a caller that reads has %.200s after %v", r.sent.String(), took)
			}
			s.Close()
		}
		for _, out := range list {
			out.Abort()
		}
		all.Wait()
	})
}

// TestWhatIsNotRead: a stream with a caller reading nothing holds its present frame, and not the page of the log.
func TestWhatIsNotRead(t *testing.T) {
	store, err := pebble.Open(t.TempDir(), replay.Settings{Sync: replay.SyncNever}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	const n, size = 20, 8 << 10
	process, open := followers(t, store, pieces{n: 400, size: size}, 64<<20, n+1)
	var all sync.WaitGroup
	list, flushes := runUnread(&all, open, n)
	var sending int64
	for range n {
		sending += int64(<-flushes)
	}
	asynctest.Eventually(t, "the streams hold no more than what they are sending", func() bool {
		return process.Memory.Total() <= sending
	})
	for _, out := range list {
		out.Abort()
	}
	all.Wait()
}

// TestLargeFrameIsNotRead: a stream with a caller reading nothing holds a large frame, and not the record beside it.
func TestLargeFrameIsNotRead(t *testing.T) {
	store, err := pebble.Open(t.TempDir(), replay.Settings{Sync: replay.SyncNever}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	const n = 20
	_, open := followers(t, store, pieces{n: 1, size: 2 << 20}, 256<<20, n+1)
	before := live()
	var all sync.WaitGroup
	list, flushes := runUnread(&all, open, n)
	var sending uint64
	for range n {
		sending += uint64(<-flushes)
	}
	if held := live() - before; held > sending*3/2 {
		t.Errorf("%d MiB are held while %d MiB are sent", held>>20, sending>>20)
	}
	for _, out := range list {
		out.Abort()
	}
	all.Wait()
}

// live returns the number of bytes of the heap in use.
func live() uint64 {
	runtime.GC()
	runtime.GC() // empties the pools
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}
