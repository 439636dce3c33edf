// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// flood is an agent with one product in many pieces, and then a completion.
type flood struct {
	partner.Agent
	pieces, size int
}

func (f flood) Run(context.Context, *agent.Turn, bool) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		items := []task.DataItem{task.Text(strings.Repeat("x", f.size))}
		for range f.pieces {
			piece := task.Chunk{Append: true, Product: task.Product{ID: "p", DataItems: items}}
			if !yield(agent.Report{State: task.Working, Chunks: []task.Chunk{piece}}, nil) {
				return
			}
		}
		yield(agent.Report{State: task.Failed}, nil) // it settles the task, and ends its streams
	}
}

// discarded is a connection counting its input.
type discarded struct {
	b                     []byte
	events, bytes, gather int
}

func (d *discarded) Event(_ uint64, build func([]byte) ([]byte, string, bool)) {
	d.b, _, _ = build(d.b[:0])
	d.events, d.bytes, d.gather = d.events+1, d.bytes+len(d.b), d.gather+len(d.b)
}
func (d *discarded) Data(func([]byte) []byte) {}
func (d *discarded) Comment(string)           {}
func (d *discarded) Buffered() int            { return d.gather }
func (d *discarded) Flush() error             { d.gather = 0; return nil }

// BenchmarkSettled measures the frames of a stream of a task settled after many pieces: all of it, and the last event
// alone, a whole result in version 2.
func BenchmarkSettled(b *testing.B) {
	for _, f := range []flood{{pieces: 1000, size: 10}, {pieces: 20_000, size: 30}, {pieces: 20_000, size: 200}} {
		for _, v := range []struct {
			server translate.Server
			kind   string
		}{{aip.Server(), "message"}, {aip.ServerV2("partner"), "task-command"}} {
			g := newGateway(b, func(c *gateway.Config) {
				c.Callers, c.Partner.Agent = []translate.Server{v.server}, f
				c.Partner.MaxEvents, c.Partner.MaxBytes = 100_000, 64<<20
				c.Memory = limit.Limits{Total: 1 << 30, PerLeader: 1 << 30}
			})
			l := &front{t: b, g: g, peer: identity.Peer{Proof: identity.ByToken, Kind: "test", ID: "leader"}, kind: v.kind}
			first := l.send(b.Context(), "stream", "start")
			first.Run(new(discarded))
			first.Close()
			last := first.Outcome().Events
			for _, after := range []int{0, last - 1} {
				what := "all"
				if after > 0 {
					what = "last"
				}
				b.Run(fmt.Sprintf("%d pieces of %d/%s/%s", f.pieces, f.size, what, v.server.Name()), func(b *testing.B) {
					b.ReportAllocs()
					out := new(discarded)
					for b.Loop() {
						s := l.sendMessage(b.Context(), "stream", "re-stream", "t",
							fmt.Sprintf(`,"commandParams":{"lastEventSeq":%d}`, after))
						s.Run(out)
						s.Close()
						if n := s.Outcome().Events; n != last-after {
							b.Fatalf("%d events of %d, %v", n, last-after, s.Outcome().Why)
						}
					}
					b.ReportMetric(float64(out.bytes)/float64(b.N), "B/stream")
				})
			}
		}
	}
}
