// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/replay/follow"
	"github.com/aip-gateway/aip-gateway/task"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// subscription is a client's followed task: a stream of its events, sent as notifications.
type subscription struct {
	session *Session
	taskID  string
	agent   string // AID
	log     string
	events  []string // the names of the wanted events; nil for all
	stream  *gateway.Stream

	out  []byte // gathered frames
	ends []int  // the ends of each of them
	seq  uint64 // of the last gathered event

	done chan struct{} // closed when the stream has ended

	// under the mutex of the session
	written uint64        // the number of the last event sent
	read    uint64        // of the last one read by the client
	stored  uint64        // of the last one stored as read
	gone    bool          // the stream has ended, or is about to
	ended   bool          // the task has no more events
	drained bool          // the stream has ended with its configuration, and the connection follows soon
	closed  bool          // the store has the end of the events
	cursor  follow.Cursor // in the store
}

// follower returns the name of the client's device.
func (s *Session) follower() follower { return follower{s.AID, s.Device, s.Slot} }

// maxTaskIDs is the number of tasks in one request, at most.
const maxTaskIDs = 100

// taskIDs reads the ids of tasks in the params of a request.
func taskIDs(params gjson.Result) (ids []string, err error) {
	list := params.Get("task_ids").Array()
	for _, v := range list {
		if v.Type == gjson.String && v.Str != "" && !strings.Contains(v.Str, "\x00") && len(v.Str) <= maxTaskID {
			ids = append(ids, strings.Clone(v.Str))
		}
	}
	if len(ids) != len(list) || len(ids) == 0 || len(ids) > maxTaskIDs {
		return nil, task.Errorf(task.InvalidParams, "task_ids must be 1 to %d ids of tasks", maxTaskIDs).
			WithField("params.task_ids")
	}
	return ids, nil
}

// subscribe is task.subscribe. Tasks not visible to the client are left out; if there are no others, the first one's
// error is the answer.
func (s *Session) subscribe(ctx context.Context, r *request) error {
	ids, err := taskIDs(r.Params)
	if err != nil {
		return err
	}
	events, err := eventsOf(r.Params)
	if err != nil {
		return err
	}
	has, err := hasOf(r.Params)
	if err != nil {
		return err
	}
	subscribed := []string{}
	var begun []*subscription
	var refused error
	for _, id := range ids {
		sub, err := s.follow(ctx, id, events, has)
		if err == nil {
			r.summary.Command, r.summary.Task = string(task.ReStream), id
		}
		switch {
		case err == nil:
			subscribed = append(subscribed, id)
			if sub != nil {
				begun = append(begun, sub)
			}
		case refused == nil:
			refused = err
		}
	}
	if len(subscribed) == 0 && refused != nil {
		return refused
	}
	_ = r.Reply(mustJSON(map[string]any{"subscribed": subscribed}))
	for _, sub := range begun {
		sub.stream.Park(sub, sub.over)
	}
	return nil
}

// eventsOf reads the names of a client's wanted events; nil for all.
func eventsOf(params gjson.Result) (events []string, err error) {
	for _, v := range params.Get("events").Array() {
		name := strings.TrimPrefix(v.String(), codec.EventPrefix)
		if !slices.Contains(codec.Events(), name) {
			return nil, task.Errorf(task.InvalidParams, "events must be %s", strings.Join(codec.Events(), ", ")).
				WithField("params.events")
		}
		events = append(events, name)
	}
	return events, nil
}

// hasOf reads the numbers of a client's last events, by task. AUN has no such member; a client sending it gets no event
// twice, even after the gateway has died.
func hasOf(params gjson.Result) (has map[string]uint64, err error) {
	params.Get("after").ForEach(func(id, seq gjson.Result) bool {
		n, ok := jsonrpc.Int(seq)
		if !ok || n < 0 || len(has) == maxTaskIDs {
			err = task.Errorf(task.InvalidParams, "after must be an object with the numbers of events").
				WithField("params.after")
			return false
		}
		if has == nil {
			has = make(map[string]uint64)
		}
		has[id.String()] = uint64(n)
		return true
	})
	return has, err
}

// follow begins to follow a task. The subscription is nil if the client follows it already; then only the events
// change.
func (s *Session) follow(
	ctx context.Context, id string, events []string, has map[string]uint64,
) (*subscription, error) {
	c, err := s.findFor(ctx, codec.Subscribe, id)
	if err != nil || c.entry == nil { // the assignee of such a task is sent its events anyway
		return nil, err
	}
	if c.unknown {
		stream, err := s.open(&c, 0, false, false)
		if stream != nil { // the task was started just now
			stream.Close()
			err = errGone(id)
		}
		return nil, err
	}
	s.mu.Lock()
	before := s.subs[id]
	if before != nil && !before.gone {
		before.events = events
		s.mu.Unlock()
		return nil, nil
	}
	n := len(s.subs)
	s.mu.Unlock()
	if max := s.front.config.Limits.Subscriptions; n >= max {
		return nil, task.Errorf(task.LimitExceeded, "you follow %d tasks here; unsubscribe from some", max).
			WithData("limit", "subscriptions").WithData("max", max)
	}
	sub := &subscription{session: s, taskID: id, agent: c.agent.AID, log: c.entry.Log, events: events,
		done: make(chan struct{})}
	after, known := uint64(0), c.entry.Creator == s.follower().creator()
	if before != nil { // events sent on this connection arrive
		<-before.done
		s.mu.Lock()
		after, known, sub.cursor = before.written, true, before.cursor
		s.mu.Unlock()
	} else if sub.cursor, err = s.front.config.Index.cursor(ctx, id, sub.log, s.follower()); err != nil {
		return nil, err
	} else if sub.cursor.Stored() {
		after, known = sub.cursor.Seq, true
	}
	if at, ok := has[id]; ok {
		after, known = at, true
	}
	sub.written, sub.read, sub.stored = after, after, after
	if sub.stream, err = s.open(&c, after, known, true); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch other := s.subs[id]; {
	case s.over:
		sub.stream.Close()
		return nil, task.Errorf(task.Internal, "the connection has ended")
	case other != nil && other != before: // by another request at the same time
		sub.stream.Close()
		return nil, nil
	}
	s.subs[id] = sub
	return sub, nil
}

// open opens a stream of the events of a task after one. If the number is not known, the stream begins now, with the
// task as it is unless fromNow is set.
func (s *Session) open(c *call, after uint64, known, fromNow bool) (*gateway.Stream, error) {
	var q gateway.Request
	defer q.Release()
	q.Resumes, q.After = known, after
	dialect := codec.Server{Relation: c.entry.relation(), FromNow: fromNow}
	// The stream outlives the request.
	a := s.begin(s.ctx, &q, jsonrpc.ID("0"), c, dialect, codec.Subscribe, gjson.Parse(`{}`))
	return a.Stream, a.Err
}

// Event implements gateway.Sink.
func (sub *subscription) Event(seq uint64, build func(dst []byte) (data []byte, name string, more bool)) {
	begin := len(sub.out)
	data, name, _ := build(sub.out)
	sub.seq = max(sub.seq, seq)
	if data == nil {
		return
	}
	if sub.wants(name) {
		sub.out, sub.ends = data, append(sub.ends, len(data))
	} else {
		sub.out = data[:begin]
	}
}

func (sub *subscription) wants(name string) bool {
	sub.session.mu.Lock()
	defer sub.session.mu.Unlock()
	return len(sub.events) == 0 || slices.Contains(sub.events, name)
}

// Data implements gateway.Sink. Data without a number is the error of a stream, known to over.
func (sub *subscription) Data(func(dst []byte) []byte) {}

// Buffered implements gateway.Sink.
func (sub *subscription) Buffered() int { return len(sub.out) }

// keptBuffer is the size of the buffer of a subscription at rest, at most, in bytes.
const keptBuffer = 4 << 10

// Flush implements gateway.Sink.
func (sub *subscription) Flush() error {
	s, begin := sub.session, 0
	for _, end := range sub.ends {
		if err := s.conn.Send(s.ctx, sub.out[begin:end]); err != nil {
			return err
		}
		begin = end
	}
	if sub.out, sub.ends = sub.out[:0], sub.ends[:0]; cap(sub.out) > keptBuffer {
		sub.out, sub.ends = nil, nil
	}
	s.mu.Lock()
	moved := sub.seq > sub.written
	if moved {
		sub.written = sub.seq
	}
	s.mu.Unlock()
	if moved {
		s.acknowledge()
	}
	return nil
}

// Abort implements gateway.AbortSink.
func (sub *subscription) Abort() { sub.session.reclaim() }

// reclaim cuts the connection of a client reading nothing, because others need the memory of its frame.
func (s *Session) reclaim() { s.front.work.Go(func() { s.conn.Cut(errUnread) }) }

var errUnread = errors.New("wsfront: the client did not read a frame whose memory others need")

// over is called when the stream of a subscription has ended.
func (sub *subscription) over() {
	s := sub.session
	defer close(sub.done)
	sub.stream.Close()
	out := sub.stream.Outcome()
	s.mu.Lock()
	cut := sub.gone || s.over || s.conn.Err() != nil
	sub.gone, sub.ended = true, out.Why == nil && out.Complete
	sub.drained = !cut && !sub.ended && s.front.draining()
	ended := sub.ended
	if cut && !ended && sub.written == sub.stored && s.subs[sub.taskID] == sub {
		delete(s.subs, sub.taskID) // there is nothing to store
	}
	s.mu.Unlock()
	switch {
	case ended || cut:
		s.acknowledge()
	case isCompacted(out.Why):
		s.front.work.Go(func() { s.restart(sub) })
	case !s.front.draining():
		s.front.config.Log.Warn("a subscription has ended", "task", sub.taskID, "aid", s.AID, "error", out.Why)
		s.front.work.Go(func() { s.leave(errors.New("a subscription has failed")) })
	}
}

// isCompacted reports whether the missing events of a client are no longer kept.
func isCompacted(err error) bool {
	e, ok := errors.AsType[*task.Error](err)
	return ok && e.Data["reason"] == "EVENTS_EXPIRED"
}

// restart follows a task again if its events were dropped before the client had them: it gets the task as it is
// instead.
func (s *Session) restart(sub *subscription) {
	c, err := s.findID(s.ctx, sub.taskID)
	next := &subscription{session: s, taskID: sub.taskID, agent: sub.agent, log: sub.log, done: make(chan struct{})}
	if err == nil {
		next.stream, err = s.open(&c, 0, false, false)
	}
	if err != nil {
		s.leave(errors.New("a subscription has failed"))
		return
	}
	s.mu.Lock()
	next.events, next.cursor = sub.events, sub.cursor
	replace := !s.over && s.subs[sub.taskID] == sub
	if replace {
		s.subs[sub.taskID] = next
	}
	s.mu.Unlock()
	if !replace {
		next.stream.Close()
		return
	}
	next.stream.Park(next, next.over)
}

var errUnsubscribed = errors.New("wsfront: the client has unsubscribed")

// unsubscribe is task.unsubscribe.
func (s *Session) unsubscribe(r *request) error {
	ids, err := taskIDs(r.Params)
	if err != nil {
		return err
	}
	unsubscribed := []string{}
	for _, id := range ids {
		s.mu.Lock()
		sub := s.subs[id]
		found := sub != nil && !sub.gone
		if found {
			sub.gone = true
		}
		s.mu.Unlock()
		if found {
			sub.stream.Cut(errUnsubscribed)
			<-sub.done
			unsubscribed = append(unsubscribed, id)
		}
	}
	return r.Reply(mustJSON(map[string]any{"unsubscribed": unsubscribed}))
}

// cutSubscriptions ends all streams, for good, and waits for their ends.
func (s *Session) cutSubscriptions() {
	s.mu.Lock()
	s.over = true
	list := slices.Collect(maps.Values(s.subs))
	s.mu.Unlock()
	for _, sub := range list {
		sub.stream.Cut(errUnsubscribed)
	}
	for _, sub := range list {
		<-sub.done
	}
}

// followed returns the AIDs of the agents with tasks followed by the client.
func (s *Session) followed() (aids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sub := range s.subs {
		if (!sub.gone || sub.drained) && !slices.Contains(aids, sub.agent) {
			aids = append(aids, sub.agent)
		}
	}
	return aids
}

// follows reports whether the client follows a task and wants an event of it.
func (s *Session) follows(taskID, event string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.subs[taskID]
	return sub != nil && !sub.gone && (len(sub.events) == 0 || slices.Contains(sub.events, event))
}

// Comment implements gateway.Sink.
func (sub *subscription) Comment(string) {}

var _ gateway.AbortSink = (*subscription)(nil)
