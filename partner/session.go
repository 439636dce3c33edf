// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/dialect"
)

// A caller with a session and no task in its message (dialect.Policy.BySession) has one task at a time in that session.
// Its id is made of the session and a number rising by one with each task. So the log of a task decides the first of
// two messages, and nothing else must be kept of a session.

// sessionTask returns the beginning of the ids of a session's tasks.
func sessionTask(session string) string { return derive("session-task", session) + "-" }

// numbered returns the id of a session's task. Ids sort by falling numbers, so that the last task is found first.
func numbered(prefix string, n uint32) string { return fmt.Sprintf("%s%08x", prefix, math.MaxUint32-n) }

// numberOf returns the number in the id of a session's task.
func numberOf(prefix, id string) (n uint32, ok bool) {
	digits, ok := strings.CutPrefix(id, prefix)
	if !ok || len(digits) != 8 {
		return 0, false
	}
	falling, err := strconv.ParseUint(digits, 16, 32)
	return math.MaxUint32 - uint32(falling), err == nil
}

// maxSessions is the most sessions remembered. Facts of others are read from the store.
const maxSessions = 16 << 10

// sessions are the remembered facts of sessions, as of their last use.
type sessions struct {
	last remembered[uint32] // the number of the last task, by the name of a log without the number
	own  remembered[string] // the name made by the agent, or "" for none, by the list of the session's tasks
}

func newSessions() *sessions {
	return &sessions{newRemembered[uint32](), newRemembered[string]()}
}

// remembered is one fact about each of the last used sessions. Its methods may be called by any number of goroutines at
// once.
type remembered[T any] struct {
	mu *sync.Mutex
	of *simplelru.LRU[string, T]
}

func newRemembered[T any]() remembered[T] {
	of, _ := simplelru.NewLRU[string, T](maxSessions, nil) // fails for a size below 1 only
	return remembered[T]{new(sync.Mutex), of}
}

func (r remembered[T]) get(session string) (v T, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of.Get(session)
}

// putNew is put, unless something is remembered of the session already. Then it returns the remembered value.
func (r remembered[T]) putNew(session string, v T) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if had, ok := r.of.Get(session); ok {
		return had
	}
	r.of.Add(session, v)
	return v
}

func (r remembered[T]) put(session string, v T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of.Add(session, v)
}

// errTaskFull is the error of a task taking no more messages: it has ended, or has grown too large.
var errTaskFull = errors.New("partner: the task takes no more messages")

// carryOutNext carries out the next message of a session: in its last task, or, if it takes no more, in another one. A
// cancel is for the last task alone. If two messages start a task at once, the later one finds the task of the first.
func (p *Partner) carryOutNext(ctx context.Context, leader string, c *Request, stream bool) (outcome, error) {
	prefix := sessionTask(c.Message.SessionID)
	n, err := p.lastOfSession(ctx, leader, prefix)
	if err != nil {
		return outcome{}, err
	}
	next := *c
	for {
		next.Message.TaskID = numbered(prefix, n)
		r, err := p.carryOut(ctx, leader, &next, stream)
		if errors.Is(err, errTaskFull) {
			n++
			continue
		}
		if err == nil {
			p.engine.sessions.last.put(logname.New(p.Name, leader, prefix), n)
		}
		return r, err
	}
}

// lastOfSession returns the number of the last known task of a session, and 0 if there is none.
func (p *Partner) lastOfSession(ctx context.Context, leader, prefix string) (uint32, error) {
	logs := logname.New(p.Name, leader, prefix)
	if n, ok := p.engine.sessions.last.get(logs); ok {
		return n, nil
	}
	for e, err := range p.engine.store.List(ctx, logs, "") {
		if err != nil {
			return 0, listError(ctx, err)
		}
		_, _, id := logname.Split(e.Log)
		if n, ok := numberOf(prefix, id); ok {
			return n, nil
		}
	}
	return 0, nil
}

// stopsSession reports whether the command ends a session's turn under way: the agent stops. A session without such a
// turn stays as it is.
func (c *Request) stopsSession() bool { return c.BySession && c.Message.Command == task.Cancel }

// sessionError returns the error of a message of a session if its task takes none in its state.
func sessionError(c *Request, s task.State) error {
	if s.Terminal() {
		return task.Errorf(task.UnsupportedOperation, "the task is %s", s).WithCause(errTaskFull)
	}
	return task.Errorf(task.UnsupportedOperation,
		"the agent works on another message of this session; wait until it has answered that").
		WithData("reason", dialect.SessionBusy).WithData("sessionId", c.Message.SessionID)
}
