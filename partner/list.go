// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// Sizes of a page of tasks.
const (
	pageSize    = 50
	maxPageSize = 100
)

// Anyone is the Leader of webhooks that were set before their task was started, where callers are not identified.
const Anyone = "*"

// LogOf returns the name of the log of a Leader's task.
func (p *Partner) LogOf(leader, taskID string) string {
	return logname.New(p.Name, leader, taskID)
}

// LeaderOf returns the Leader of a task by the id alone, of those that may be its Leader; Anyone if there is no such
// task. It reads the names of all tasks of the Partner, so it is for Partners whose callers are not identified.
func (p *Partner) LeaderOf(ctx context.Context, taskID string, may func(leader string) bool) (string, error) {
	for e, err := range p.engine.store.List(ctx, logname.OfPartner(p.Name), "") {
		if err != nil {
			return "", listError(ctx, err)
		}
		if _, leader, id := logname.Split(e.Log); id == taskID && may(leader) {
			return leader, nil
		}
	}
	return Anyone, nil
}

// listed is a task of a list, which begins with the task that changed last.
type listed struct {
	log     string
	changed int64 // ns since 1970
	id      string
	bytes   int64 // stored
}

func (a listed) compare(b listed) int {
	return cmp.Or(cmp.Compare(b.changed, a.changed), cmp.Compare(a.id, b.id))
}

// List returns a page of the tasks of a Leader. It reads the metadata of all of them, and the logs of those on the
// page, for which it calls reserve, if that is not nil.
func (p *Partner) List(ctx context.Context, leader string, l *task.List, reserve replay.Reserve) (task.Page, error) {
	return p.list(ctx, leader, l, false, reserve)
}

// ListTentative is List with the tasks that their agent does not work on yet, too, which have no state. They are listed
// as accepted ones.
func (p *Partner) ListTentative(
	ctx context.Context, leader string, l *task.List, reserve replay.Reserve,
) (task.Page, error) {
	return p.list(ctx, leader, l, true, reserve)
}

func (p *Partner) list(
	ctx context.Context, leader string, l *task.List, tentative bool, reserve replay.Reserve,
) (task.Page, error) {
	page := task.Page{Size: l.Size}
	if page.Size <= 0 {
		page.Size = pageSize
	}
	page.Size = min(page.Size, maxPageSize)
	after, err := parseToken(l.Token)
	if err != nil {
		return page, err
	}
	var found listedHeap // the best of what comes after the token, the worst of them on top
	more := false
	for e, err := range p.engine.store.List(ctx, logname.OfLeader(p.Name, leader), "") {
		if err != nil {
			return page, listError(ctx, err)
		}
		var n metadata
		if err := json.Unmarshal(e.Head.Metadata, &n); err != nil {
			continue
		}
		if tentative && n.Tentative && n.Pending != nil {
			n.State, n.Changed, n.Session = task.Accepted, n.PendingAt, n.Pending.SessionID
		}
		if n.State == task.None || !wanted(l, &n) {
			continue
		}
		page.Total++
		_, _, id := logname.Split(e.Log)
		one := listed{log: e.Log, changed: n.Changed.UnixNano(), id: id, bytes: sizeOf(&e.Head)}
		if l.Token != "" && one.compare(after) <= 0 {
			continue
		}
		if heap.Push(&found, one); len(found) > page.Size {
			heap.Pop(&found)
			more = true
		}
	}
	slices.SortFunc(found, listed.compare)
	var size int64
	for _, one := range found {
		size += 2 * one.bytes
	}
	if reserve != nil && size > quota.Free {
		if err := reserve(ctx, size); err != nil {
			return page, err
		}
	}
	for _, one := range found {
		t, err := p.read(ctx, one.log)
		if errors.Is(err, replay.ErrNotFound) {
			continue // dropped since
		}
		if err != nil {
			return page, err
		}
		if !l.Products {
			t.Products = nil
		}
		page.Tasks = append(page.Tasks, t)
	}
	if more {
		last := found[len(found)-1]
		page.Next = base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", last.changed, last.id))
	}
	return page, nil
}

func wanted(l *task.List, n *metadata) bool {
	return (l.SessionID == "" || n.Session == l.SessionID) &&
		(l.States == nil || slices.Contains(l.States, n.State)) &&
		(n.SelfResuming || !l.SelfResuming) && !(n.SelfResuming && l.NotSelfResuming) &&
		(l.After.IsZero() || n.Changed.After(l.After))
}

// parseToken reads a Page.Next.
func parseToken(token string) (after listed, err error) {
	if token == "" {
		return after, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	changed, id, ok := strings.Cut(string(raw), " ")
	if err == nil && ok {
		after.id = id
		after.changed, err = strconv.ParseInt(changed, 10, 64)
	}
	if err != nil || !ok {
		return after, task.Errorf(task.InvalidParams, "the page token was not made by this gateway").
			WithField("params.pageToken")
	}
	return after, nil
}

// read returns a task with its histories, as it is now.
func (p *Partner) read(ctx context.Context, log string) (task.Task, error) {
	tk := p.engine.acquire(log)
	defer tk.release()
	tk.mu.Lock()
	defer tk.mu.Unlock()
	if err := tk.load(ctx); err != nil {
		return task.Task{}, err
	}
	if !tk.exists {
		return task.Task{}, replay.ErrNotFound
	}
	if tk.meta.Pending != nil {
		return tk.pendingTask(&Request{}), nil
	}
	return *tk.fold.Task(), nil
}

func listError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return StoreError(err, "the store cannot be read")
}

// listedHeap keeps the task on top that comes last, for container/heap.
type listedHeap []listed

func (h listedHeap) Len() int           { return len(h) }
func (h listedHeap) Less(i, j int) bool { return h[i].compare(h[j]) > 0 }
func (h listedHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *listedHeap) Push(x any) { *h = append(*h, x.(listed)) }

// Pop implements heap.Interface.
func (h *listedHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
