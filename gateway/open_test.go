// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// openGateway composes a gateway for any number of streams, and returns its process, too.
func openGateway(t *testing.T) (p *gateway.Process, g *gateway.Gateway) {
	g = newGateway(t, func(c *gateway.Config) {
		p = c.Process
		c.Callers, c.Partner.Agent = []translate.Server{aip.Server()}, chatty{}
		c.Partner.MaxBytes, c.Streaming.Max, c.Streaming.MaxPerLeader = 8<<20, 1000, 1000
	})
	return p, g
}

// stuck is a caller reading nothing until it is released.
type stuck struct {
	*record
	released chan struct{}
}

func (s stuck) Flush() error {
	<-s.released
	return s.record.Flush()
}

// TestOpenStreams describes a stream keeping up, and one with a caller that does not read.
func TestOpenStreams(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p, g := openGateway(t)
		peer := identity.Peer{Proof: identity.ByToken, Kind: "test", ID: "leader"}
		f := &front{t: t, g: g, peer: peer}
		began := time.Now()
		reading, behind := f.send(t.Context(), "stream", "start"), f.send(t.Context(), "stream", "re-stream")
		released := make(chan struct{})
		ended := make(chan struct{}, 2)
		for s, out := range map[*gateway.Stream]gateway.Sink{
			reading: tried{&record{}}, behind: stuck{&record{}, released},
		} {
			s.Park(out, func() {
				s.Close()
				ended <- struct{}{}
			})
		}
		reading.SetTransport("a test")
		bubble.Pass(time.Hour) // the agent has settled
		synctest.Wait()
		page, more := p.OpenStreams(t.Context(), gateway.StreamFilter{})
		if len(page) != 2 || more {
			t.Fatalf("%d streams are open, and more: %t", len(page), more)
		}
		end := page[0].End
		want := []gateway.OpenStream{
			{Number: 1, Transport: "a test", Command: "start", Events: end, Last: end},
			{Number: 2, Command: "re-stream", Events: page[1].Events, Last: page[1].Last},
		}
		for i := range want {
			w := &want[i]
			w.Partner, w.Leader, w.Task, w.Dialect, w.Since, w.End = "agent", peer.Leader(), "t", "aip", began, end
			w.User = peer.ID
		}
		if diff := cmp.Diff(want, page); diff != "" {
			t.Errorf("the streams (-want +got):\n%s", diff)
		}
		if end < 60 || page[1].Last >= end {
			t.Errorf("of %d events, a caller that does not read was sent %d", end, page[1].Last)
		}
		close(released)
		synctest.Wait()
		if page, _ := p.OpenStreams(t.Context(), gateway.StreamFilter{}); page[1].Last != end || page[1].Events != end {
			t.Errorf("a caller that reads again was sent %d of %d", page[1].Last, end)
		}
		f.sendTask("rpc", "cancel", "t", "")
		<-ended
		<-ended
		if page, _ := p.OpenStreams(t.Context(), gateway.StreamFilter{}); len(page) != 0 {
			t.Errorf("%d streams are open after the end of their task", len(page))
		}
	})
}

// TestPagesOfOpenStreams opens and closes streams at random: pages have the open ones, in the order of their opening,
// whatever the page's size and filter.
func TestPagesOfOpenStreams(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p, g := openGateway(t)
		f := &front{t: t, g: g, peer: identity.Peer{Proof: identity.ByToken, Kind: "test", ID: "leader"}}
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		random := rand.New(rand.NewPCG(1, 2))
		type opened struct {
			number uint64
			task   string
			stream *gateway.Stream
		}
		var open []opened
		for number := uint64(1); number <= 200; {
			if len(open) > 0 && random.IntN(5) < 2 {
				i := random.IntN(len(open))
				open[i].stream.Close()
				open = append(open[:i], open[i+1:]...)
				continue
			}
			id := fmt.Sprint("t", random.IntN(3))
			open = append(open, opened{number, id, f.sendMessage(ctx, "stream", "start", id, "")})
			number++
		}
		for _, id := range []string{"", "t0", "t1", "t2", "none"} {
			var want []string
			for _, o := range open {
				if id == "" || id == o.task {
					want = append(want, fmt.Sprint(o.number, " ", o.task))
				}
			}
			for _, limit := range []int{0, 1, 7, 1000} {
				var got []string
				filter := gateway.StreamFilter{Partner: "agent", Leader: f.peer.Leader(), Task: id, Limit: limit}
				for more := true; more; {
					var page []gateway.OpenStream
					page, more = p.OpenStreams(t.Context(), filter)
					for _, s := range page {
						got = append(got, fmt.Sprint(s.Number, " ", s.Task))
						filter.After = s.Number
					}
					if limit > 0 && (len(page) > limit || more && len(page) < limit) {
						t.Errorf("a page of %d has %d streams", limit, len(page))
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("of %q, %d on a page (-want +got):\n%s", id, limit, diff)
				}
			}
		}
		for _, f := range []gateway.StreamFilter{{Partner: "other"}, {Leader: "other"}, {After: 200}} {
			if page, more := p.OpenStreams(t.Context(), f); len(page) > 0 || more {
				t.Errorf("%+v selects %d streams", f, len(page))
			}
		}
		for _, o := range open {
			o.stream.Close()
		}
		if page, _ := p.OpenStreams(t.Context(), gateway.StreamFilter{}); len(page) > 0 {
			t.Errorf("%d streams are open in the end", len(page))
		}
	})
}
