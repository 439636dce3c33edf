// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"context"
	"log/slog"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// How many tasks of an agent are looked at to find the one that a turn has begun.
const (
	maxListed  = 10  // pages
	maxCompare = 200 // tasks
)

// taken are the names of tasks that belong to turns of this process, so that none is found for another turn. The oldest
// are forgotten. The zero value is ready for use. Its methods may be called by any number of goroutines at once.
type taken struct {
	once  sync.Once
	names *lru.Cache[string, struct{}]
}

// maxTaken is how many names are kept.
const maxTaken = 1 << 16

// claim takes a name, and reports whether no turn had it.
func (t *taken) claim(name string) bool {
	t.once.Do(func() { t.names, _ = lru.New[string, struct{}](maxTaken) }) // the size is positive
	had, _ := t.names.ContainsOrAdd(name, struct{}{})
	return !had
}

// canLocate reports whether the task of the turn, which the agent names, can be found.
func (r *run) canLocate() bool {
	_, ok := r.codec.(translate.Locator)
	return ok && r.unnamed(r.turn)
}

// locate looks for the task that the turn has begun, among the tasks that the agent lists, and reports its name. An
// agent that does not answer may be restarting: it has the time of one IdleTimeout to come back.
func (r *run) locate() (found bool, err error) {
	p := newPace(r.config.IdleTimeout)
	for {
		ref, err := r.locateOnce()
		switch {
		case r.ctx.Err() != nil:
			return false, Ended(r.ctx)
		case err == nil && ref == nil:
			return false, nil
		case err == nil:
			r.logger().LogAttrs(r.ctx, slog.LevelInfo, "the agent has the task whose answer was lost",
				slog.String("name", ref.Task))
			rep := agent.Report{Ref: ref, State: task.Accepted}
			r.turn = named(r.turn, &rep)
			r.report(rep)
			return true, nil
		case !transient(err):
			return false, r.unknownMethod(err)
		case p.over(err):
			return false, r.timedOut(err)
		}
		if !p.pause(r.ctx, r.jitter) {
			return false, Ended(r.ctx)
		}
	}
}

// locateOnce is locate without another attempt. It returns nil where the agent has no such task.
func (r *run) locateOnce() (*agent.Ref, error) {
	codec := r.codec.(translate.Locator)
	compared, cursor := 0, ""
	for range maxListed {
		body, err := r.ask(r.request(translate.List, codec.AppendList(nil, cursor)))
		if err != nil {
			return nil, err
		}
		tasks, next, err := codec.Listed(body, r.turn)
		if err != nil {
			return nil, err
		}
		for _, ref := range tasks {
			if compared++; compared > maxCompare {
				return nil, nil
			}
			req := r.request(translate.Get, r.codec.(translate.Getter).AppendGet(nil, ref))
			req.Ref = ref
			if body, err = r.ask(req); err != nil {
				return nil, err
			}
			if carries, err := codec.Carries(body, r.turn); err == nil && carries && r.taken.claim(ref.Task) {
				return &ref, nil
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	return nil, nil
}

// ask sends a request that has one answer, in a slot for requests that are answered soon, and returns the answer.
func (r *run) ask(req *Request) (_ []byte, err error) {
	ctx, cancel := context.WithTimeout(r.ctx, askTimeout)
	defer cancel()
	if !r.config.Slots.questions.acquire(ctx) {
		return nil, Ended(ctx)
	}
	defer r.config.Slots.questions.release()
	x, err := begin(ctx, r.transport.Routes(req.Operation)[0], req)
	if err != nil {
		return nil, err
	}
	defer func() { x.Close(err) }()
	m, err := x.Next()
	return bytes.Clone(m.Data), err
}
