// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"iter"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// paced is an agent with a piece of text for each value of a channel, until the channel is closed.
type paced struct {
	partner.Agent
	next chan struct{}
}

func (p paced) Run(ctx context.Context, _ *agent.Turn, _ bool) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		if !yield(agent.Report{State: task.Working, Revision: "0"}, nil) {
			return
		}
		product := task.Product{ID: "p", DataItems: []task.DataItem{task.Text("0123456789")}}
		for range p.next {
			if !yield(agent.Report{Chunks: []task.Chunk{{Product: product}}}, nil) { // it replaces the one before
				return
			}
		}
		yield(agent.Report{State: task.AwaitingInput, Revision: "end"}, nil)
	}
}

// sunk is a connection taking everything at once.
type sunk struct {
	b             [1024]byte
	events, bytes int
	delivered     func()
}

func (s *sunk) Event(_ uint64, build func([]byte) ([]byte, string, bool)) {

	data, _, _ := build(s.b[:0])
	s.events, s.bytes = s.events+1, s.bytes+len(data)
}
func (s *sunk) Data(func([]byte) []byte) {}
func (s *sunk) Comment(string)           {}
func (s *sunk) Buffered() int            { return s.bytes }
func (s *sunk) Flush() error {
	for ; s.events > 0; s.events-- {
		s.delivered()
	}
	s.bytes = 0
	return nil
}
func (s *sunk) TryFlush() (bool, error) { return true, s.Flush() }

// BenchmarkFollowers measures an event of a task with followers up to date, from the agent's report to the last of
// their connections.
func BenchmarkFollowers(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			next := make(chan struct{})
			g := newGateway(b, func(c *gateway.Config) {
				c.Callers, c.Partner.Agent = []translate.Server{aip.Server()}, paced{next: next}
				c.Streaming.Max, c.Streaming.MaxPerLeader = n+1, n+1
			})
			f := &front{t: b, g: g, peer: identity.Peer{Proof: identity.ByToken, Kind: "test", ID: "leader"}}
			f.send(b.Context(), "stream", "start").Close()
			var over, all sync.WaitGroup
			for range n {
				s := f.send(b.Context(), "stream", "re-stream")
				out := &sunk{delivered: func() {}}
				if s == nil || s.RunFor(out, time.Millisecond) {
					b.Fatal("the stream has ended")
				}
				out.delivered = all.Done
				over.Add(1)
				all.Add(1)
				s.Park(out, func() {
					s.Close()
					over.Done()
				})
			}
			next <- struct{}{}
			all.Wait()
			b.ReportAllocs()
			for b.Loop() {
				all.Add(n)
				next <- struct{}{}
				all.Wait()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/delivery")
			all.Add(10 * n) // more than the events of the end
			close(next)
			f.send(b.Context(), "rpc", "cancel")
			over.Wait()
		})
	}
}
