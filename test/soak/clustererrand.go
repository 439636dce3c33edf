// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/soak/history"
)

// errand is a task of a Leader of a cluster, whose clients call all gateways at once.
type errand struct {
	*errands
	id      string
	at      []*leader.Client // of its Leader, at each gateway
	began   time.Time
	history *history.Task
	clients atomic.Int64  // numbers what calls at the same time
	exists  atomic.Bool   // its start was answered
	group   *clusterGroup // nil for a task of none

	mu       sync.Mutex
	chance   *rand.Rand
	forAgent []string                     // ids of the messages that the agent must receive
	events   map[uint64][sha256.Size]byte // as they were streamed first
}

// The limits of an errand. A command is made again until it is answered.
const (
	callLimit   = 45 * time.Second // of one call: it waits 10 s for an owner, and 5 s for the agent
	errandLimit = 3 * time.Minute
	response    = 5 * time.Second
	brief       = 2 * time.Second // the response time of a start that is not to wait for its end
)

func newErrand(e *errands, name int64) *errand {
	id := fmt.Sprintf("chaos-%d", name)
	one := &errand{errands: e, id: id, at: e.cluster.clients[name%int64(len(e.cluster.clients))],
		history: &history.Task{ID: id}, chance: rand.New(rand.NewPCG(e.seed, uint64(name))),
		events: make(map[uint64][sha256.Size]byte)}
	if name%groupShare == 0 {
		one.group = e.groups[name/groupShare%int64(len(e.groups))]
		one.at = one.group.at
	}
	return one
}

// random returns a number below n.
func (e *errand) random(n int) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.chance.IntN(n)
}

// think lets some time go by.
func (e *errand) think(ctx context.Context, most time.Duration) {
	wait(ctx, time.Duration(e.random(int(most/time.Millisecond)))*time.Millisecond)
}

// run leads the task through one of its possible lives, and checks all that was seen of it.
func (e *errand) run(ctx context.Context) {
	e.began = time.Now()
	whole := ctx // of the run
	ctx, cancel := context.WithTimeout(ctx, errandLimit)
	defer cancel()
	first := e.random(clusterSize)
	var beside sync.WaitGroup
	over := make(chan struct{})
	beside.Go(func() { e.look(ctx, over) })
	var product string
	var hook []string
	var followed bool
	var err error
	kind := e.random(5)
	if e.group != nil {
		kind = 5
	}
	switch kind {
	case 0: // with a webhook, started at two gateways at once, and completed likewise
		if hook, err = e.hook(ctx, first); err == nil {
			beside.Go(func() { e.follow(ctx, first+2, true) })
			followed = true
			product, err = e.twice(ctx, first, task.Start, "s", "hello", response)
		}
		if err == nil {
			err = e.become(ctx, task.AwaitingCompletion, task.None)
		}
		if e.think(ctx, 2*time.Second); err == nil {
			_, err = e.twice(ctx, first+1, task.Complete, "c", "", 0)
		}
		product = "echo: " + product
	case 1: // in two turns, the second one begun at two gateways at once
		if _, err = e.say(ctx, first, task.Start, "s", "ask", response); err == nil {
			err = e.become(ctx, task.AwaitingInput, task.None)
		}
		if e.think(ctx, 3*time.Second); err == nil {
			product, err = e.twice(ctx, first+1, task.Continue, "t", "blue", 0)
			product = "you said: " + product
		}
		if err == nil {
			err = e.become(ctx, task.AwaitingCompletion, task.None)
		}
		if err == nil {
			_, err = e.say(ctx, first+2, task.Complete, "c", "", 0)
		}
	case 2: // followed at two gateways at once
		for i := range 2 {
			beside.Go(func() { e.follow(ctx, first+1+i, true) })
		}
		followed = true
		if _, err = e.say(ctx, first, task.Start, "s", "stream 20 200", brief); err == nil {
			err = e.become(ctx, task.AwaitingCompletion, task.None)
		}
		if err == nil {
			_, err = e.say(ctx, first+1, task.Complete, "c", "", 0)
		}
		for i := range 20 {
			product += fmt.Sprintf("chunk-%d ", i)
		}
	case 3: // canceled
		if _, err = e.say(ctx, first, task.Start, "s", "slow 60", brief); err == nil {
			e.think(ctx, 4*time.Second)
			_, err = e.say(ctx, first+1, task.Cancel, "x", "", 0)
		}
	case 4: // completed at one gateway and canceled at another one at the same time
		if product, err = e.say(ctx, first, task.Start, "s", "hello", response); err == nil {
			err = e.become(ctx, task.AwaitingCompletion, task.None)
		}
		product = "echo: " + product
		if e.think(ctx, 2*time.Second); err == nil {
			var both sync.WaitGroup
			var other error
			both.Go(func() { _, other = e.say(ctx, first+1, task.Cancel, "x", "", 0) })
			_, err = e.say(ctx, first+2, task.Complete, "c", "", 0)
			both.Wait()
			err = errors.Join(err, other)
		}
	case 5:
		e.grouped.Add(1)
		product, err = e.inGroup(ctx)
	}
	var last *task.Task
	if err == nil {
		last, err = e.end(ctx)
	}
	if err != nil {
		cancel()
	}
	close(over)
	beside.Wait()
	if err == nil && followed {
		for i := range clusterSize {
			e.follow(ctx, i, false)
		}
	}
	if err == nil {
		err = e.check(last, product)
	}
	if err == nil && e.group != nil {
		err = e.awaitGroup(ctx, last.StatusHistory)
	}
	if err == nil {
		e.errands.keep(e, hook, last.StatusHistory)
	} else {
		e.errands.keep(e, nil, nil)
		if whole.Err() == nil || time.Since(e.began) >= errandLimit {
			e.complain("%s: %v", e.id, err)
		}
	}
	if err := e.history.Check(e.out); err != nil {
		e.complain("%v", err)
	}
}

// say sends a command to a gateway, and to the next one where that fails, until it is answered. It returns the text.
func (e *errand) say(ctx context.Context, gateway int, command task.Command, name, text string, response time.Duration,
) (string, error) {
	call := &task.Call{Message: task.Message{ID: e.id + "-" + name, Command: command, TaskID: e.id,
		SentAt: e.began.Truncate(time.Millisecond)}}
	call.Terms.Response = response
	if text != "" {
		text = mark(text, call.Message.ID)
		call.Message.DataItems = []task.DataItem{task.Text(text)}
		e.mu.Lock()
		if !slices.Contains(e.forAgent, call.Message.ID) {
			e.forAgent = append(e.forAgent, call.Message.ID)
		}
		e.mu.Unlock()
	}
	client := int(e.clients.Add(1))
	for ; ; gateway++ {
		if _, err := e.do(ctx, client, gateway, call); err == nil || ctx.Err() != nil {
			e.exists.CompareAndSwap(false, err == nil)
			return text, err
		}
		wait(ctx, time.Duration(50+e.random(200))*time.Millisecond)
	}
}

// twice sends a command to two gateways at once.
func (e *errand) twice(ctx context.Context, gateway int, command task.Command, name, text string,
	response time.Duration) (string, error) {
	var both sync.WaitGroup
	var other error
	both.Go(func() { _, other = e.say(ctx, gateway+1, command, name, text, response) })
	text, err := e.say(ctx, gateway, command, name, text, response)
	both.Wait()
	return text, errors.Join(err, other)
}

// errMissing is the answer for a task that does not exist.
const errMissing = -32001

// do makes one call, and takes it into the history.
func (e *errand) do(ctx context.Context, client, gateway int, call *task.Call) (*task.Task, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	gateway %= clusterSize
	n := e.nodes[gateway]
	began := time.Now()
	answer, err := e.at[gateway].Do(ctx, call)
	op := history.Op{Client: client, Gateway: gateway, Command: call.Message.Command, Called: began.UnixNano(),
		Returned: time.Now().UnixNano()}
	if op.Command != task.Get {
		op.Message = call.Message.ID
	}
	var refused *leader.Error
	switch {
	case err == nil && answer.Task == nil:
		err = errors.New("the answer is no task")
	case err == nil:
		op.Seen = history.See(answer.Task, op.Command == task.Get)
	case errors.As(err, &refused) && refused.Code == errMissing && op.Command == task.Get:
		op.Seen, answer, err = new(history.Seen), &leader.Answer{Task: new(task.Task)}, nil
	}
	if err != nil {
		op.Error = err.Error()
	}
	e.history.Add(op)
	if !errors.Is(ctx.Err(), context.Canceled) {
		e.note(n, began, err, fmt.Sprintf("%s %s", e.id, call.Message.Command))
	}
	if err != nil {
		return nil, err
	}
	return answer.Task, nil
}

// get asks a gateway for the task, and the next one where that fails, unless it is to be that one.
func (e *errand) get(ctx context.Context, client, gateway int, there bool) (*task.Task, error) {
	for {
		t, err := e.do(ctx, client, gateway, &task.Call{Message: task.Message{Command: task.Get, TaskID: e.id}})
		if err == nil || ctx.Err() != nil {
			return t, err
		}
		if !there {
			gateway++
		}
		wait(ctx, 200*time.Millisecond)
	}
}

// become asks for the task until it is in a state. before is a settled state that it may still have, because a command
// is on its way; empty for none.
func (e *errand) become(ctx context.Context, want, before task.State) error {
	client := int(e.clients.Add(1))
	for {
		t, err := e.get(ctx, client, e.random(clusterSize), false)
		switch {
		case err != nil:
			return fmt.Errorf("it has not become %s: %w", want, err)
		case t.Status.State == want:
			return nil
		case t.Status.State.Settled() && t.Status.State != before:
			return fmt.Errorf("it is %s, and should be %s: %s", t.Status.State, want, said(t))
		}
		wait(ctx, 300*time.Millisecond)
	}
}

// end asks all gateways for the task, which has ended.
func (e *errand) end(ctx context.Context) (t *task.Task, err error) {
	client := int(e.clients.Add(1))
	for i := range clusterSize {
		if t, err = e.get(ctx, client, i, true); err != nil {
			return nil, err
		}
		if !t.Status.State.Terminal() {
			return nil, fmt.Errorf("it is %s in the end", t.Status.State)
		}
	}
	return t, nil
}

// look asks any gateway for the task, again and again.
func (e *errand) look(ctx context.Context, over <-chan struct{}) {
	client := int(e.clients.Add(1))
	for {
		select {
		case <-over:
			return
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(500+e.random(2000)) * time.Millisecond):
			_, _ = e.do(ctx, client, e.random(clusterSize), &task.Call{Message: task.Message{Command: task.Get, TaskID: e.id}})
		}
	}
}

// hook sets a webhook at a gateway, and returns the path that is notified. Where an answer is lost there may be a
// webhook all the same, so another path is taken the next time.
func (e *errand) hook(ctx context.Context, gateway int) ([]string, error) {
	for try := 0; ; try++ {
		path := fmt.Sprintf("/%s/%d", e.id, try)
		g := (gateway + try) % clusterSize
		began := time.Now()
		once, cancel := context.WithTimeout(ctx, callLimit)
		_, _, err := e.at[g].Request(once, "notification/set", map[string]string{"taskId": e.id,
			"url": "http://" + e.hooks.addr + path, "token": "t"})
		cancel()
		if e.note(e.nodes[g], began, err, e.id+" notification/set"); err == nil || ctx.Err() != nil {
			return []string{path}, err
		}
		wait(ctx, 200*time.Millisecond)
	}
}

// check says what is wrong with the task as it is in the end.
func (e *errand) check(t *task.Task, product string) error {
	if err := checkProducts(t, product); err != nil {
		return err
	}
	for _, id := range e.forAgent {
		if n := e.cluster.agent.times(id); n > 1 || n == 0 && t.Status.State == task.Completed {
			return fmt.Errorf("the agent has received the message %s %d times", id, n)
		}
	}
	return nil
}
