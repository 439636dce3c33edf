// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
)

// journey is a task of an honest Leader, from its start to its end.
type journey struct {
	*leaders
	client *leader.Client // of its Leader
	name   int64
	fault  string // that the agent's connection has at this task; empty for none
	pace   <-chan struct{}
	over   <-chan struct{} // closed when pace ends
	m      *measured

	id    string
	begun bool     // a request was made
	late  bool     // the phase is over
	sent  []string // ids of the messages, in order
	// refused says that the cancel was refused once: the agent may have carried it out all the same, and then the task is
	// canceled by its word, without the command.
	refused bool
}

// patience is how long a command may be refused before that counts as wrong.
const patience = time.Minute

var errGivenUp = errors.New("given up")

// run leads the task through one of its possible lives, and checks what there is of it in the end.
func (j *journey) run(ctx context.Context) {
	j.id = fmt.Sprintf("soak-%d", j.name)
	word := fmt.Sprintf("#%d", j.name)
	if j.fault != "" {
		word += fmt.Sprintf(" [%s %d]", j.fault, j.name)
	}
	product, end := "echo: hello "+word, task.Completed
	var err error
	switch j.name % 10 {
	case 0: // with a webhook
		if err = j.hook(ctx); err == nil {
			err = j.start(ctx, "hello "+word, task.AwaitingCompletion)
		}
	case 1, 2: // in two turns
		if err = j.start(ctx, "ask "+word, task.AwaitingInput); err == nil {
			_, err = j.say(ctx, task.Continue, "blue "+word, task.AwaitingCompletion)
		}
		product = "you said: blue " + word
	case 3, 4: // as a stream
		err = j.stream(ctx, "stream 5 20 "+word)
		product = "chunk-0 chunk-1 chunk-2 chunk-3 chunk-4 "
	case 5: // canceled
		if err = j.start(ctx, "slow 30 "+word, task.Working); err == nil {
			_, err = j.say(ctx, task.Cancel, "", task.Canceled)
		}
		product, end = "", task.Canceled
	default:
		err = j.start(ctx, "hello "+word, task.AwaitingCompletion)
	}
	if err == nil && end == task.Completed {
		_, err = j.say(ctx, task.Complete, "", task.Completed)
	}
	var t *task.Task
	if err == nil {
		t, err = j.say(ctx, task.Get, "", end)
	}
	if err == nil {
		err = j.check(t, product)
	}
	j.mu.Lock()
	j.count++
	if j.name%10 == 0 && err == nil {
		j.hooked = append(j.hooked, j.id)
	}
	j.mu.Unlock()
	if err != nil {
		j.complain("%s (%s): %v", j.id, word, err)
	}
}

func (j *journey) start(ctx context.Context, text string, want task.State) error {
	_, err := j.say(ctx, task.Start, text, want)
	return err
}

// say sends a command until it is carried out, and then asks for the task until it is in a state.
func (j *journey) say(ctx context.Context, command task.Command, text string, want task.State) (*task.Task, error) {
	call := &task.Call{Message: task.Message{ID: fmt.Sprintf("%s-%d", j.id, len(j.sent)), Command: command, TaskID: j.id}}
	if text != "" {
		call.Message.DataItems = []task.DataItem{task.Text(text)}
	}
	if want == task.Working {
		call.Terms.Response = time.Millisecond
	}
	if command != task.Get {
		j.sent = append(j.sent, call.Message.ID)
	}
	for deadline := time.Now().Add(patience); ; {
		t, err := j.do(ctx, call)
		if err == nil && t.Status.State == want {
			return t, nil
		}
		if err == nil && (t.Status.State.Terminal() || t.Status.State.Settled()) {
			return nil, fmt.Errorf("%s left it %s, which should be %s: %s", command, t.Status.State, want, said(t))
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%s was not carried out within %v: %w", command, patience, errors.Join(errGivenUp, err))
		}
		j.refused = j.refused || err != nil && command == task.Cancel
		if err == nil {
			call = &task.Call{Message: task.Message{Command: task.Get, TaskID: j.id}}
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func said(t *task.Task) string {
	if len(t.Status.DataItems) == 0 {
		return "no reason given"
	}
	return t.Status.DataItems[0].Text
}

// do sends a command once. An error that does not pass is returned as one of say's.
func (j *journey) do(ctx context.Context, call *task.Call) (*task.Task, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	j.wait()
	began := time.Now()
	answer, err := j.client.Do(ctx, call)
	j.m.note(kindOfCall(call), began, err, j.fault == "" && j.measures())
	if err != nil {
		return nil, err
	}
	if answer.Task == nil {
		return nil, errors.New("the answer is no task")
	}
	return answer.Task, nil
}

func kindOfCall(call *task.Call) string {
	switch call.Message.Command {
	case task.Start:
		return starts
	case task.Get:
		return gets
	}
	return commands
}

// wait waits until another request may be made. The first one may: phase has waited for it. Once the phase is over, all
// that are left are made at once, and how long they take is not measured.
func (j *journey) wait() {
	if !j.begun {
		j.begun = true
		return
	}
	select {
	case <-j.pace:
	case <-j.over:
		j.late = true
	}
}

// measures reports whether the latency of a request counts that no fault was meant for.
func (j *journey) measures() bool { return !j.late && !j.full.Load() }

// stream starts the task as a stream and reads that up to the end of the turn. Where it is refused, it is made again: a
// start of a task that exists is read from the beginning.
func (j *journey) stream(ctx context.Context, text string) error {
	call := &task.Call{Message: task.Message{
		ID: j.id + "-0", Command: task.Start, TaskID: j.id, DataItems: []task.DataItem{task.Text(text)},
	}}
	j.sent = append(j.sent, call.Message.ID)
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		done, err := j.follow(ctx, call)
		if done || time.Now().After(deadline) {
			return err
		}
	}
}

// follow reads a stream. It reports whether that has come to the end of the turn.
func (j *journey) follow(ctx context.Context, call *task.Call) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	j.wait()
	began, first := time.Now(), true
	var fold task.Fold
	for ev, err := range j.client.Follow(ctx, call, func(error) {}) {
		if first {
			j.m.note(streams, began, err, j.fault == "" && j.measures())
			first = false
		}
		if err != nil {
			return false, err
		}
		fold.Apply(ev.Event)
		if state := fold.Status().State; state == task.AwaitingCompletion {
			return true, nil
		} else if state.Terminal() {
			return true, fmt.Errorf("the stream ended %s: %s", state, said(fold.Task()))
		}
	}
	return false, errors.New("the stream ended before its turn")
}

// hook sets a webhook for the task.
func (j *journey) hook(ctx context.Context) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		j.wait()
		began := time.Now()
		err := setWebhook(ctx, j.client, j.site.Front, j.id, "http://"+j.site.hooks.addr+"/")
		j.m.note(webhooks, began, err, j.measures())
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// setWebhook makes a webhook of a task.
func setWebhook(ctx context.Context, c *leader.Client, front, taskID, url string) error {
	body := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notification/set","id":1,"params":`+
		`{"taskId":%q,"url":%q,"token":"t"}}`, taskID, url)
	path := "https://" + front + "/notification/set"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err == nil && !bytes.Contains(answer, []byte(`"result"`)) {
		err = fmt.Errorf("the webhook is refused: %s", answer)
	}
	return err
}

// check says what is wrong with an ended task.
func (j *journey) check(t *task.Task, product string) error {
	from, last := task.None, time.Time{}
	for _, s := range t.StatusHistory {
		if !task.CanMove(from, s.State) || !s.ChangedAt.After(last) {
			return fmt.Errorf("the history has %s at %v after %s at %v", s.State, s.ChangedAt, from, last)
		}
		from, last = s.State, s.ChangedAt
	}
	if from != t.Status.State {
		return fmt.Errorf("the history ends with %s, and the task is %s", from, t.Status.State)
	}
	var got []string
	for _, m := range t.MessageHistory {
		if m.SenderRole == task.Leader {
			got = append(got, m.ID)
		}
	}
	if !slices.Equal(got, j.sent) && !(j.refused && slices.Equal(got, j.sent[:1])) {
		return fmt.Errorf("the messages %q are in the history, and %q were sent", got, j.sent)
	}
	return checkProducts(t, product)
}

// checkProducts returns an error if the text of the products of a task is another one.
func checkProducts(t *task.Task, want string) error {
	var text strings.Builder
	for _, p := range t.Products {
		for _, item := range p.DataItems {
			text.WriteString(item.Text)
		}
	}
	if text.String() != want {
		return fmt.Errorf("the products are %.200q, and should be %.200q", text.String(), want)
	}
	return nil
}
