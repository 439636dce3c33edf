// SPDX-License-Identifier: Apache-2.0

package aunpeer

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
)

// Assignee is an agent that connects to a gateway as a client does, and carries out the tasks announced by
// event/task.updated.
type Assignee struct {
	Client *Client
	// ByMessage makes it ask and deliver by message.send, with the task's id in the data. Otherwise it sends events,
	// without an id.
	ByMessage bool
	// To is the AID of the receiver of its messages, if the task names no owner.
	To string
	// Heard is called with the task of each event, in order. It may be nil.
	Heard func(TaskEvent)

	mu      sync.Mutex
	working map[string]*assigned
	seen    []string // each event's task and status
}

// assigned is a task carried out by an Assignee.
type assigned struct {
	agent   *Assignee
	conn    *Conn
	id      string
	owner   string
	stop    context.CancelFunc
	answers chan string
	inputs  int // the number of read inputs of the task

	delivered bool // by messages
}

// Serve logs in, connects, and carries out tasks until the connection ends or ctx is done.
func (a *Assignee) Serve(ctx context.Context) error {
	conn, err := a.Client.Online(ctx)
	if err != nil {
		return err
	}
	return a.ServeOn(ctx, conn)
}

// ServeOn carries out the tasks announced on a connection.
func (a *Assignee) ServeOn(ctx context.Context, conn *Conn) error {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	defer conn.Cut()
	a.mu.Lock()
	a.working = make(map[string]*assigned) // tasks of an earlier connection have been stopped
	a.mu.Unlock()
	for {
		f, err := conn.Event(ctx, nil)
		if err != nil {
			return err
		}
		var t TaskEvent
		if !strings.HasPrefix(f.Method, "event/task.") || json.Unmarshal(f.Params, &t) != nil ||
			t.Assignee != a.Client.ID.AID {
			continue
		}
		if a.Heard != nil {
			a.Heard(t)
		}
		a.mu.Lock()
		a.seen = append(a.seen, t.TaskID+" "+t.Status)
		w := a.working[t.TaskID]
		if w == nil && !Ended(t.Status) {
			w = &assigned{agent: a, conn: conn, id: t.TaskID, owner: t.Owner, answers: make(chan string, 100)}
			var its context.Context
			its, w.stop = context.WithCancel(ctx)
			a.working[t.TaskID] = w
			running.Go(func() { _ = w.run(its, t.Input) }) // it ends with the task or the connection
		}
		if w != nil {
			w.update(t)
		}
		a.mu.Unlock()
	}
}

// Seen returns the received events: each one's task and status.
func (a *Assignee) Seen() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.seen...)
}

// run carries out the script of a task. Without an input, as a later event need not have one, it gets the task.
func (w *assigned) run(ctx context.Context, input *Content) error {
	if input == nil {
		t, err := w.conn.Do(ctx, "task.get", map[string]any{"task_id": w.id})
		if err != nil {
			return err
		}
		input = t.Input
	}
	return Run(ctx, input.String(), w)
}

// update reads the news of a task: new inputs of its owner, and its end.
func (w *assigned) update(t TaskEvent) {
	if Ended(t.Status) {
		w.stop()
		return
	}
	if t.Status == "working" && t.Message != nil {
		w.answers <- t.Message.String()
		return
	}
	n := 0
	for _, m := range t.Messages {
		if m.From != w.agent.Client.ID.AID {
			if n++; n > w.inputs {
				w.inputs = n
				w.answers <- m.Content.String()
			}
		}
	}
}

func (w *assigned) call(ctx context.Context, method string, more map[string]any) error {
	params := map[string]any{"task_id": w.id}
	for k, v := range more {
		params[k] = v
	}
	_, err := w.conn.Call(ctx, method, params)
	return err
}

// Accept implements Work. A task accepted before, on another connection, is carried out again.
func (w *assigned) Accept(ctx context.Context) error {
	err := w.call(ctx, "task.accept", nil)
	if Code(err) == -32176 {
		return nil
	}
	return err
}

// Reject implements Work.
func (w *assigned) Reject(ctx context.Context, reason string) error {
	return w.call(ctx, "task.reject", map[string]any{"reason": reason})
}

// Complete implements Work. Artifacts sent by messages are not sent again.
func (w *assigned) Complete(ctx context.Context, artifacts ...Artifact) error {
	if w.delivered {
		artifacts = []Artifact{}
	}
	return w.call(ctx, "task.complete", map[string]any{"artifacts": artifacts})
}

// Fail implements Work.
func (w *assigned) Fail(ctx context.Context, reason string) error {
	return w.call(ctx, "task.fail", map[string]any{"reason": reason})
}

// Delegate implements Delegator.
func (w *assigned) Delegate(ctx context.Context, to, text string) error {
	return w.call(ctx, "task.delegate", map[string]any{"to": to, "input": Text(text)})
}

// Ask implements Work.
func (w *assigned) Ask(ctx context.Context, question string) (string, error) {
	select {
	case answer := <-w.answers: // it has asked on an earlier connection
		return answer, nil
	default:
	}
	var err error
	if w.agent.ByMessage {
		err = w.message(ctx, Payload{Type: "status", State: "input_required", Text: question})
	} else {
		text := Text(question)
		err = w.conn.Notify(ctx, "event/task.updated", map[string]any{
			"task_id": w.id, "status": "input_required", "updated_at": now(), "message": text,
		})
	}
	if err != nil {
		return "", err
	}
	select {
	case answer := <-w.answers:
		return answer, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Piece implements Work.
func (w *assigned) Piece(ctx context.Context, a Artifact, last bool) error {
	if w.agent.ByMessage {
		w.delivered = true
		text, _ := a.Content.(string)
		return w.message(ctx, Payload{Type: "text", Text: text})
	}
	return w.conn.Notify(ctx, "event/task.artifact", map[string]any{
		"task_id": w.id, "artifact": a, "append": true, "last_chunk": last,
	})
}

func (w *assigned) message(ctx context.Context, p Payload) error {
	p.Data = map[string]any{"task_id": w.id}
	to := w.owner
	if to == "" {
		to = w.agent.To
	}
	_, err := w.conn.Call(ctx, "message.send", map[string]any{"to": to, "payload": p})
	return err
}
