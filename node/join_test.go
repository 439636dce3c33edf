// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// memoryMember is a member of processes that share memory.
type memoryMember struct {
	*replaytest.Node
	ready  error
	closed bool
	calls  []gateway.Call
}

// Execute waits for the agent for as long as it may, and answers with the number of waiting calls that it had.
func (m *memoryMember) Execute(
	ctx context.Context, _ int, _ string, c *gateway.Call, _ replay.Reserve,
) (r gateway.Result, err error) {
	m.calls = append(m.calls, *c)
	if c.Message.Command == task.Get || c.Terms.Response == task.NoWait {
		return r, nil
	}
	<-ctx.Done()
	return r, ctx.Err()
}
func (m *memoryMember) Ready() error                            { return m.ready }
func (*memoryMember) Drain(context.Context, string, bool) error { return nil }
func (*memoryMember) Move(context.Context, int, string) error   { return nil }
func (*memoryMember) HandOver(context.Context)                  {}
func (m *memoryMember) Close() error                            { m.closed = true; return nil }

// joinBy begins to join others by a function.
func joinBy(t *testing.T, shards int, join func() (Member, error)) (*Joining, context.CancelFunc, error) {
	exiting, exit := context.WithCancel(t.Context())
	j, err := Join(JoinConfig{Shards: shards, Name: "one", Settings: replay.Settings{MaxSize: 9},
		Log: slog.New(slog.DiscardHandler), Exiting: exiting,
		Join: func(context.Context) (Member, error) { return join() }})
	return j, exit, err
}

// TestJoinLater: a process that cannot reach what it shares is up, unavailable, and says why. It is a member as soon as
// it can be, and what was asked of it before then counts.
func TestJoinLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shards := replaytest.NewShards(2)
		m := &memoryMember{Node: shards.Node()}
		down := errors.New("the servers cannot be reached")
		reached := time.Now().Add(30 * time.Second)
		j, _, err := joinBy(t, 2, func() (Member, error) {
			if time.Now().Before(reached) {
				return nil, MayPass(down)
			}
			return m, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		j.Handle("service", func(context.Context, int, []byte) ([]byte, error) { return []byte("answer"), nil })
		logs := j.Logs(1)
		if err := j.Writable(); !errors.Is(err, replay.ErrUnavailable) || !errors.Is(err, down) {
			t.Errorf("whether it can be written: %v", err)
		}
		if _, err := logs.Head(t.Context(), "tlog"); !errors.Is(err, replay.ErrUnavailable) {
			t.Errorf("the head of a log: %v", err)
		}
		if _, _, err := logs.Read("tlog", 0).Next(t.Context(), nil); !errors.Is(err, replay.ErrUnavailable) {
			t.Errorf("the records of a log: %v", err)
		}
		if _, err := j.Execute(t.Context(), 0, "", nil, nil); !errors.Is(err, replay.ErrFenced) {
			t.Errorf("a call is not one to be tried again: %v", err)
		}
		for _, err := range j.Each(t.Context(), "service", nil) {
			if task.KindOf(err) != task.StoreUnavailable {
				t.Errorf("what all processes answer: %v", err)
			}
		}
		if _, err := j.Member(); task.KindOf(err) != task.StoreUnavailable {
			t.Errorf("an operator is told %v", err)
		}
		set := shard.Join(j, slog.New(slog.DiscardHandler))
		shards.Assign(1, m.Node, false)
		time.Sleep(32 * time.Second)
		synctest.Wait()
		if !set.Owns(1) || j.Writable() != nil {
			t.Errorf("it is no member: %v", j.Writable())
		}
		if _, err := logs.Head(t.Context(), "tlog"); !errors.Is(err, replay.ErrNotFound) {
			t.Errorf("the head of a log: %v", err)
		}
		answer, err := m.Call(t.Context(), 1, "service", nil)
		if diff := cmp.Diff("answer", string(answer)); diff != "" || err != nil {
			t.Errorf("a service from before is not there: %v %s", err, diff)
		}
		m.ready = partner.Moved()
		if j.Writable() == nil {
			t.Error("it can be written, although the process cannot act")
		}
		if err := errors.Join(set.Close(), j.Close()); err != nil || !m.closed {
			t.Errorf("it was not closed: %v", err)
		}
	})
}

// TestJoinRefused: what does not pass is an error of the configuration.
func TestJoinRefused(t *testing.T) {
	refused := errors.New("the stream aip-3 has other subjects")
	_, _, err := joinBy(t, 2, func() (Member, error) { return nil, refused })
	if !errors.Is(err, refused) {
		t.Errorf("error %v", err)
	}
}

// TestForwardedCallsAtTheEnd: a call that waits at another process is answered when this one is about to end, by the
// same message, or, where it has no id, as a get.
func TestForwardedCallsAtTheEnd(t *testing.T) {
	for id, want := range map[string]task.Command{"m1": task.Continue, "": task.Get} {
		synctest.Test(t, func(t *testing.T) {
			m := &memoryMember{Node: replaytest.NewShards(1).Node()}
			j, exit, err := joinBy(t, 1, func() (Member, error) { return m, nil })
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(time.Minute, exit)
			var c gateway.Call
			c.Op, c.Message.Command, c.Message.TaskID, c.Message.ID = translate.Command, task.Continue, "t", id
			began := time.Now()
			if _, err := j.Execute(t.Context(), 0, "", &c, nil); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took < time.Minute || took > time.Minute+answerWithin {
				t.Errorf("it was answered after %v", took)
			}
			if last := m.calls[len(m.calls)-1].Message; len(m.calls) != 2 || last.Command != want || last.ID != id ||
				last.TaskID != "t" {
				t.Errorf("the calls were %+v", m.calls)
			}
		})
	}
}
