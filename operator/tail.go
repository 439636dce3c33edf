// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/sseproxy"
)

const (
	tailHeartbeat = 15 * time.Second
	tailTimeout   = 30 * time.Second // of one write to a client that does not read
)

// follower is what a stream of tailTasks sends.
type follower interface {
	// gather gathers what is new. It reports whether there was anything. The error is io.EOF if nothing follows.
	gather(context.Context, *sseproxy.Writer) (more bool, err error)
	// News returns a channel that has a value when there is something new.
	News() <-chan struct{}
	Close()
}

// tailTasks answers a request of adminapi.TailTasks. The stream ends with its configuration.
func tailTasks(a *Admin, w http.ResponseWriter, r *http.Request) error {
	c := a.InForce()
	if c == nil { // it has just stopped
		return &Refusal{http.StatusServiceUnavailable, "the gateway is stopping"}
	}
	if a.tailing.Add(1) > maxTails {
		a.tailing.Add(-1)
		return errTails
	}
	defer a.tailing.Add(-1)
	f, err := newFollower(r.Context(), a, r)
	if err != nil {
		return err
	}
	defer f.Close()
	ctx, done := context.WithCancel(r.Context())
	defer done()
	defer context.AfterFunc(c.Draining, done)()
	follow(ctx, w, f)
	return nil
}

// newFollower returns what a request asks for.
func newFollower(ctx context.Context, a *Admin, r *http.Request) (follower, error) {
	q := r.URL.Query()
	if !q.Has("task") {
		if err := checkQuery(q, "partner", "leader", "state"); err != nil {
			return nil, err
		}
		states, err := statesOf(q)
		if err != nil {
			return nil, err
		}
		f := partner.TaskFilter{Partner: q.Get("partner"), Leader: q.Get("leader"), States: states}
		if a.Shards.Peers() != nil {
			all, err := a.tails.follow(ctx, f)
			if err != nil {
				return nil, err
			}
			return allFollower{all, a}, nil
		}
		return changeFollower{a.Tasks.Process().Tail(f), a}, nil
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" { // of a browser that has lost the connection
		q = url.Values{"partner": q["partner"], "leader": q["leader"], "task": q["task"], "after": {last}}
	}
	if err := checkQuery(q, "partner", "leader", "task", "after"); err != nil {
		return nil, err
	}
	f, err := eventFilterOf(q)
	if err != nil {
		return nil, err
	}
	tail, err := partner.TailEvents(ctx, a.Shards.Logs(a.Tasks.ShardOf(f.Partner, f.Leader)), f)
	if err != nil {
		return nil, err
	}
	return eventFollower{tail, a}, nil
}

// follow sends what f gathers until it ends, the client has left or does not read, or ctx ends.
func follow(ctx context.Context, w http.ResponseWriter, f follower) {
	// The deadline of a host for the request would end the stream.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	due := make(chan struct{}, 1)
	s := sseproxy.NewWriter(w, sseproxy.Options{Heartbeat: tailHeartbeat, Timeout: tailTimeout,
		HeartbeatDue: func() {
			select {
			case due <- struct{}{}:
			default:
			}
		}})
	defer s.Close()
	if s.Flush() != nil {
		return
	}
	for {
		more, err := f.gather(ctx, s)
		if s.Flush() != nil || err != nil {
			return
		}
		if more {
			continue
		}
		select {
		case <-f.News():
		case <-due:
		case <-ctx.Done():
			return
		}
	}
}

// sendJSON gathers an event; id is 0 for none.
func sendJSON(s *sseproxy.Writer, id uint64, name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	s.Event(id, func(b []byte) ([]byte, string, bool) { return append(b, data...), name, false })
	return nil
}

// changeFollower sends the changes of state of tasks.
type changeFollower struct {
	*partner.Tail
	of *Admin
}

func (f changeFollower) gather(_ context.Context, s *sseproxy.Writer) (more bool, err error) {
	changes, lost := f.Next()
	return len(changes) > 0, f.of.sendChanges(s, changes, lost)
}

// allFollower sends the changes of state of the tasks at all gateways.
type allFollower struct {
	*allTail
	of *Admin
}

func (f allFollower) gather(_ context.Context, s *sseproxy.Writer) (more bool, err error) {
	changes, lost, unknown := f.Next()
	err = f.of.sendChanges(s, changes, lost)
	for _, gateway := range unknown {
		err = errors.Join(err, sendJSON(s, 0, adminapi.TailLost, adminapi.Lost{Gateway: gateway}))
	}
	return len(changes) > 0, err
}

// sendChanges gathers changes, and how many are left out.
func (a *Admin) sendChanges(s *sseproxy.Writer, changes []partner.Change, lost uint64) (err error) {
	for i := range changes {
		c := &changes[i]
		err = errors.Join(err, sendJSON(s, 0, adminapi.TailChange, adminapi.TaskChange{
			TaskName: adminapi.TaskName{Partner: c.Partner, Leader: c.Leader, Task: c.ID},
			OfAgent:  a.agent(c.Partner), Session: c.Session, State: stateOf(c.State), Since: c.Since, Last: c.Last,
		}))
	}
	if lost > 0 {
		err = errors.Join(err, sendJSON(s, 0, adminapi.TailLost, adminapi.Lost{Changes: lost}))
	}
	return err
}

// eventFollower sends the events of a task.
type eventFollower struct {
	*partner.EventTail
	of *Admin
}

func (f eventFollower) gather(ctx context.Context, s *sseproxy.Writer) (more bool, err error) {
	events, skipped, err := f.Next(ctx)
	if err == io.EOF {
		if of, err := f.Overview(ctx); err == nil {
			_ = sendJSON(s, 0, adminapi.TailEnd, f.of.taskOf(&of))
		}
		return false, io.EOF
	}
	if skipped > 0 {
		err = errors.Join(err, sendJSON(s, 0, adminapi.TailLost, adminapi.Lost{Events: skipped}))
	}
	for i := range events {
		err = errors.Join(err, sendJSON(s, events[i].Seq, adminapi.TailEvent, eventOf(&events[i])))
	}
	return len(events) > 0 || skipped > 0, err
}
