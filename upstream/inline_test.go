// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// way is a way to carry a turn out. All of them must yield the same reports in the same time.
type way struct {
	name string
	run  func(context.Context, *upstream.Agent, *agent.Turn) iter.Seq2[agent.Report, error]
}

// ways returns all ways to carry a turn out, with streams or without. An inline wait is interrupted at various moments:
// before it begins, while the agent works or answers, and never.
func ways(stream bool) []way {
	all := []way{{"run", func(ctx context.Context, a *upstream.Agent, t *agent.Turn) iter.Seq2[agent.Report, error] {
		return carryOut(ctx, a, t, stream)
	}}}
	if stream {
		return all
	}
	for _, most := range []time.Duration{-1, 0, 1, 70 * time.Second, time.Hour} {
		all = append(all, way{fmt.Sprintf("inline for %v", most), inlineFor(most)})
	}
	return append(all, way{"interrupted before", func(
		ctx context.Context, a *upstream.Agent, t *agent.Turn,
	) iter.Seq2[agent.Report, error] {
		in := a.Inline(t)
		in.Interrupt()
		return func(yield func(agent.Report, error) bool) {
			if rep, ended := in.Wait(ctx, time.Now().Add(time.Hour)); ended {
				yield(rep, nil)
			} else {
				in.Rest()(yield)
			}
		}
	}})
}

// inlineFor carries a turn out inline for a time, and the rest of it in another goroutine.
func inlineFor(
	most time.Duration,
) func(context.Context, *upstream.Agent, *agent.Turn) iter.Seq2[agent.Report, error] {
	return func(ctx context.Context, a *upstream.Agent, t *agent.Turn) iter.Seq2[agent.Report, error] {
		return func(yield func(agent.Report, error) bool) {
			in := a.Inline(t)
			if rep, ended := in.Wait(ctx, time.Now().Add(most)); ended {
				yield(rep, nil)
				return
			}
			rest := make(chan struct{})
			go func() { defer close(rest); in.Rest()(yield) }()
			<-rest
		}
	}
}

// TestInlineEnds: a turn canceled while it is carried out inline ends at once, at every moment of its exchange, and
// leaves no slot, no connection in use and no goroutine.
func TestInlineEnds(t *testing.T) {
	slowly := func(w http.ResponseWriter, r *http.Request, _ int) {
		pass(r, time.Second)
		for _, c := range is("completed") {
			io.WriteString(w, string(c))
			w.(http.Flusher).Flush()
			pass(r, 10*time.Millisecond)
		}
	}
	whole := time.Second + time.Duration(len(is("completed")))*10*time.Millisecond
	for after := time.Duration(0); after < whole; after += 205 * time.Millisecond {
		slots := upstream.NewSlots(2, 0)
		change := func(s *settings) { s.Slots = slots }
		withAgent(t, script{"send": slowly}.handler(), change, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
			why := errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			in := a.Inline(turn("x"))
			begun := time.Now()
			time.AfterFunc(after, func() { cancel(why); in.Interrupt() })
			rep, ended := in.Wait(ctx, begun.Add(time.Hour))
			if took := time.Since(begun); took != after || ended {
				t.Errorf("after %v: it was waited for %v: %v", after, took, rep)
			}
			var last error
			for _, err := range in.Rest() {
				last = err
			}
			if !errors.Is(last, why) || task.KindOf(last) != task.Internal || time.Since(begun) != after {
				t.Errorf("after %v: canceled: %v, after %v", after, last, time.Since(begun))
			}
			if used, waiting := slots.Taken(); used+waiting != 0 {
				t.Errorf("after %v: %d slots are taken, %d turns wait for one", after, used, waiting)
			}
		})
	}
}

// TestInlineKeepsItsSlot: an interrupted turn keeps its slot until its answer is there. A turn without a free slot
// waits for one in its rest.
func TestInlineKeepsItsSlot(t *testing.T) {
	slots := upstream.NewSlots(2, 0) // one for turns
	later := func(w http.ResponseWriter, r *http.Request, _ int) {
		pass(r, time.Second)
		io.WriteString(w, is("completed"))
	}
	change := func(s *settings) { s.Slots = slots }
	withAgent(t, script{"send": later}.handler(), change, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
		first, second := a.Inline(turn("1")), a.Inline(turn("2"))
		for _, in := range []interface {
			Wait(context.Context, time.Time) (agent.Report, bool)
		}{first, second} {
			if rep, ended := in.Wait(t.Context(), time.Now()); ended {
				t.Errorf("it has ended: %v", rep)
			}
		}
		if used, _ := slots.Taken(); used != 1 {
			t.Errorf("%d slots are taken, want that of the first turn", used)
		}
		rest := make(chan []string)
		go func() {
			var all []string
			for rep, err := range second.Rest() {
				all = append(all, fmt.Sprint(rep.Delivery != agent.DeliveryUnknown, " ", one(rep, err)))
			}
			rest <- all
		}()
		synctest.Wait()
		if diff := cmp.Diff([]string{"completed"}, show(first.Rest())); diff != "" {
			t.Errorf("the first (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"true ", "true ", "false completed"}, <-rest); diff != "" {
			t.Errorf("the second (-want +got):\n%s", diff)
		}
		if used, waiting := slots.Taken(); used+waiting != 0 {
			t.Errorf("%d slots are taken, %d turns wait for one", used, waiting)
		}
	})
}

// TestInlineStreamEnds: the context ends a stream in answer to an inline request, too.
func TestInlineStreamEnds(t *testing.T) {
	answers := script{"send": streams(true, news("working"))}
	withAgent(t, answers.handler(), nil, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		begun := time.Now()
		time.AfterFunc(5*time.Second, func() { cancel(why) })
		in := a.Inline(turn("x"))
		if rep, ended := in.Wait(ctx, begun.Add(time.Hour)); ended || time.Since(begun) != 0 {
			t.Errorf("a stream was waited for %v: %v", time.Since(begun), rep)
		}
		var last error
		for _, err := range in.Rest() {
			last = err
		}
		if !errors.Is(last, why) || time.Since(begun) != 5*time.Second {
			t.Errorf("canceled: %v, after %v", last, time.Since(begun))
		}
	})
}
