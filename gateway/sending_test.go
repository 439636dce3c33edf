// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// chatty is an agent with pieces of text of different lengths, some together and some alone, and then a request for
// input.
type chatty struct{ partner.Agent }

func (chatty) Run(ctx context.Context, turn *agent.Turn, _ bool) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		random := rand.New(rand.NewPCG(1, 2))
		for i := range 60 {
			text := strings.Repeat("x", 1<<random.IntN(16))
			product := task.Product{ID: "p", DataItems: []task.DataItem{task.Text(text)}}
			piece := task.Chunk{Append: i > 0, Product: product}
			if !yield(agent.Report{State: task.Working, Chunks: []task.Chunk{piece}, Revision: fmt.Sprint(i)}, nil) {
				return
			}
			select {
			case <-time.After(time.Duration(random.IntN(3)) * time.Second):
			case <-ctx.Done():
				return
			}
		}
		yield(agent.Report{State: task.AwaitingInput, Revision: "end"}, nil)
	}
}

// record is a connection keeping everything sent.
type record struct {
	random *rand.Rand
	line   []byte // gathered
	sent   strings.Builder
	refuse int // of so many flushes, one would have to wait; 0 for none
	fail   error
	tried  int // flushes without a wait
}

func (r *record) Event(seq uint64, build func([]byte) ([]byte, string, bool)) {
	r.line = fmt.Appendf(r.line, "%d ", seq)
	r.line, _, _ = build(r.line)
	r.line = append(r.line, '\n')
}
func (r *record) Data(build func([]byte) []byte) { r.line = append(build(r.line), '\n') }
func (r *record) Comment(text string)            { r.line = fmt.Appendf(r.line, ": %s\n", text) }
func (r *record) Buffered() int                  { return len(r.line) }
func (r *record) Flush() error {
	r.sent.Write(r.line)
	r.line = nil
	return r.fail
}

// tried is a record that can mostly be sent to without a wait.
type tried struct{ *record }

func (t tried) TryFlush() (bool, error) {
	if t.refuse > 0 && t.random.IntN(t.refuse) == 0 {
		return false, nil
	}
	t.tried++
	return true, t.Flush()
}

// ways are all ways to send a stream. Each returns when the stream has ended.
var ways = map[string]func(*gateway.Stream, *record){
	"in a goroutine":              func(s *gateway.Stream, r *record) { s.Run(r) },
	"where it is appended":        func(s *gateway.Stream, r *record) { s.Run(tried{r}) },
	"mostly where it is appended": func(s *gateway.Stream, r *record) { r.refuse = 3; s.Run(tried{r}) },
	"parked":                      func(s *gateway.Stream, r *record) { park(s, r, tried{r}) },
	"parked, may wait":            func(s *gateway.Stream, r *record) { park(s, r, r) },
	"parked, may wait often":      func(s *gateway.Stream, r *record) { r.refuse = 2; park(s, r, tried{r}) },
}

func park(s *gateway.Stream, first *record, then gateway.Sink) {
	if s.RunFor(first, time.Millisecond) {
		return
	}
	over := make(chan struct{})
	s.Park(then, func() { close(over) })
	<-over
}

var errLeft = errors.New("the caller has left")

// TestEveryWayOfSendingIsTheSame: in whatever way a stream is sent and ends, the caller receives the same bytes.
func TestEveryWayOfSendingIsTheSame(t *testing.T) {
	type streaming struct {
		t     *testing.T
		g     *gateway.Gateway
		peer  identity.Peer
		drain context.CancelFunc
		s     *gateway.Stream
		leave context.CancelFunc
	}
	send := func(st *streaming, ctx context.Context, method, command string) *gateway.Stream {
		return (&front{t: st.t, g: st.g, peer: st.peer}).sendMessage(ctx, method, command, "t", `,"sessionId":"s"`)
	}
	for name, end := range map[string]struct {
		after func(*streaming) // a while after the stream was opened
		last  string
		parks bool // a parked stream ends like this, too
	}{
		"the task ends": {func(st *streaming) { send(st, st.t.Context(), "rpc", "cancel") }, `"canceled"`, true},
		"drained":       {func(st *streaming) { st.drain() }, ": the configuration was replaced", true},
		"expired":       {func(*streaming) {}, "-32008", true},
		"cut":           {func(st *streaming) { st.s.Cut(errLeft) }, "", true},
		"left":          {func(st *streaming) { st.leave() }, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			want := ""
			for way, run := range ways {
				if strings.HasPrefix(way, "parked") && !end.parks {
					continue
				}
				bubble.Test(t, func(t *testing.T) {
					drain, drained := context.WithCancel(t.Context())
					ctx, leave := context.WithCancel(t.Context())
					st := &streaming{t: t, drain: drained, leave: leave,
						peer: identity.Peer{Proof: identity.ByToken, Kind: "test", ID: "leader"}}
					st.g = newGateway(t, func(c *gateway.Config) {
						c.Callers, c.Partner.Agent = []translate.Server{aip.Server()}, chatty{}
						c.Partner.MaxBytes, c.Limits.Bytes = 8<<20, 1<<20
						c.Streaming.Drain, c.Streaming.Patience = drain, time.Minute
					})
					defer drained()
					if name == "expired" {
						st.peer.Expires = time.Now().Add(10 * time.Minute)
					}
					st.s = send(st, ctx, "stream", "start")
					time.AfterFunc(5*time.Minute, func() { end.after(st) })
					r := &record{random: rand.New(rand.NewPCG(3, 4))}
					run(st.s, r)
					st.s.Close()
					synctest.Wait() // for the cause of the stream's end
					got := r.sent.String()
					if name != "left" && name != "cut" {
						lines := strings.Split(strings.TrimSpace(got), "\n")
						if last := lines[len(lines)-1]; !strings.Contains(last, end.last) || len(lines) < 60 {
							t.Errorf("%s: of %d lines, the last one is %.300s", way, len(lines), last)
						}
					}
					if strings.Contains(way, "where") && r.tried < 20 {
						t.Errorf("%s: %d flushes were tried", way, r.tried)
					}
					if want == "" {
						want = got
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s (-want +got):\n%.2000s", way, diff)
					}
				})
			}
		})
	}
}
