// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// Sizes of a page of tasks.
const (
	pageSize    = 50
	maxPageSize = 100
)

// Anyone is the Leader of webhooks set before the start of their task, if callers are not identified.
const Anyone = "*"

// LogOf returns the name of the log of a Leader's task.
func (p *Partner) LogOf(leader, taskID string) string {
	return logname.New(p.Name, leader, taskID)
}

// Unfinished returns the number of unfinished tasks of a Leader at the Partner, and of all Leaders in this shard.
func (p *Partner) Unfinished(leader string) (ofLeader, ofAll int64) {
	return p.engine.open.of(p.LogOf(leader, ""))
}

// LeaderOf returns the Leader of a task of a Partner by the id alone, among the Leaders accepted by may; Anyone if
// there is no such task. It is for Partners with unidentified callers.
func LeaderOf(
	ctx context.Context, logs replay.Logs, partner, taskID string, may func(leader string) bool,
) (string, error) {
	for l, err := range logs.Listed(ctx, logname.ListOfID(partner, taskID), replay.ListedLog{}) {
		if err != nil {
			return "", listError(ctx, err)
		}
		if _, leader, _ := logname.Split(l.Log); may(leader) {
			return leader, nil
		}
	}
	return Anyone, nil
}

// List returns a page of the tasks of a Leader. It reads their places in lists of the store, and their logs. For the
// logs it calls reserve, if reserve is not nil. Lists of one Leader wait for one another.
func (p *Partner) List(ctx context.Context, leader string, l *task.List, reserve replay.Reserve) (task.Page, error) {
	return p.list(ctx, leader, l, false, reserve)
}

// ListTentative is List including tasks not yet in work at their agent. These have no state, and are listed as accepted
// ones.
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
	after, total, err := parseToken(l.Token)
	if err != nil {
		return page, err
	}
	if after.Log != "" {
		after.Log = p.LogOf(leader, after.Log)
	}
	lists := p.engine.lists
	s := p.selects(leader, l, tentative)
	var found []replay.ListedLog
	var size int64
	if err := lists.inTurn(ctx, leader, func() (err error) {
		if page.Total = total; l.Count && l.Token == "" {
			if page.Total, err = s.count(ctx); err != nil {
				return err
			}
		}
		if found, err = s.first(ctx, page.Size+1, after); err != nil {
			return err
		}
		if len(found) > page.Size {
			found = found[:page.Size]
			page.Next = formatToken(found[page.Size-1], page.Total)
		}
		size, err = p.sizes(ctx, found)
		return err
	}); err != nil {
		return page, listError(ctx, err)
	}
	if reserve != nil && size > limit.Free {
		if err := reserve(ctx, size); err != nil { // it may wait, so no other call waits for this one
			return page, err
		}
	}
	return page, lists.inTurn(ctx, leader, func() error {
		for _, one := range found {
			t, err := p.read(ctx, one.Log)
			if errors.Is(err, replay.ErrNotFound) {
				continue // dropped since
			}
			if err != nil {
				return err
			}
			if !l.Products {
				t.Products = nil
			}
			page.Tasks = append(page.Tasks, t)
		}
		return nil
	})
}

// sizes returns about the number of bytes needed to read tasks.
func (p *Partner) sizes(ctx context.Context, found []replay.ListedLog) (size int64, err error) {
	for _, one := range found {
		head, err := p.engine.store.Head(ctx, one.Log)
		if err != nil && !errors.Is(err, replay.ErrNotFound) {
			return 0, err
		}
		size += 2 * sizeOf(&head)
	}
	return size, nil
}

// formatToken returns the Page.Next of a page ending with a task.
func formatToken(last replay.ListedLog, total int) string {
	_, _, id := logname.Split(last.Log)
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %d %s", last.At.UnixNano(), total, id))
}

// parseToken reads a Page.Next: the place of the last task on the page, with its id as the Log, and the Page.Total.
func parseToken(token string) (after replay.ListedLog, total int, err error) {
	if token == "" {
		return after, 0, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	parts := strings.SplitN(string(raw), " ", 3)
	if err == nil && len(parts) == 3 && parts[2] != "" {
		var at int64
		if at, err = strconv.ParseInt(parts[0], 10, 64); err == nil {
			total, err = strconv.Atoi(parts[1])
		}
		after = replay.ListedLog{Log: parts[2], At: time.Unix(0, at)}
	}
	if err != nil || after.Log == "" || total < 0 {
		return after, 0, task.Errorf(task.InvalidParams, "the page token was not made by this gateway").
			WithField("params.pageToken")
	}
	return after, total, nil
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

// selection is a list's selection of a Leader's tasks.
type selection struct {
	store  replay.Store
	lists  []string  // of the store, with the tasks; no two share a task
	labels []string  // only the tasks with one of these labels; nil for all
	since  time.Time // only the tasks changed after this
}

// selects returns the selection of a list: one list of the store for each state, or the list of the session with the
// states as its labels.
func (p *Partner) selects(leader string, l *task.List, tentative bool) *selection {
	states := l.States
	if states == nil {
		states = task.States()
	}
	var keys []string
	for i, s := range states {
		if slices.Contains(states[:i], s) {
			continue
		}
		if s == task.AwaitingInput && !l.NotSelfResuming {
			keys = append(keys, stateKey(s, true))
		}
		if !l.SelfResuming {
			keys = append(keys, stateKey(s, false))
		}
		if s == task.Accepted && tentative && !l.SelfResuming {
			keys = append(keys, tentativeKey)
		}
	}
	s := &selection{store: p.engine.store, since: l.After}
	if l.SessionID != "" {
		s.lists, s.labels = []string{logname.ListOfSession(p.Name, leader, sessionKey(l.SessionID))}, keys
		return s
	}
	for _, key := range keys {
		s.lists = append(s.lists, logname.ListOfState(p.Name, leader, key))
	}
	return s
}

// each yields the selected tasks of one list after a given one, in their order.
func (s *selection) each(ctx context.Context, list string, after replay.ListedLog) iter.Seq2[replay.ListedLog, error] {
	return func(yield func(replay.ListedLog, error) bool) {
		for l, err := range s.store.Listed(ctx, list, after) {
			switch {
			case err != nil:
				yield(l, err)
				return
			case !s.since.IsZero() && !l.At.After(s.since):
				return
			case s.labels != nil && !slices.Contains(s.labels, l.Label):
				continue
			}
			if !yield(l, nil) {
				return
			}
		}
	}
}

// first returns the first n tasks after a given one.
func (s *selection) first(ctx context.Context, n int, after replay.ListedLog) (found []replay.ListedLog, err error) {
	for _, list := range s.lists {
		left := n
		for l, err := range s.each(ctx, list, after) {
			if err != nil {
				return nil, err
			}
			found = append(found, l)
			if left--; left == 0 {
				break
			}
		}
	}
	slices.SortFunc(found, replay.ListedLog.Compare)
	seen := make(map[string]bool, len(found)) // one changing its state meanwhile may be in two lists
	found = slices.DeleteFunc(found, func(l replay.ListedLog) bool {
		again := seen[l.Log]
		seen[l.Log] = true
		return again
	})
	return found[:min(n, len(found))], nil
}

// maxCounted is the most tasks counted for a Page.Total.
const maxCounted = 10_000

// count returns the number of selected tasks, at most maxCounted.
func (s *selection) count(ctx context.Context) (n int, err error) {
	for _, list := range s.lists {
		for _, err := range s.each(ctx, list, replay.ListedLog{}) {
			if err != nil {
				return n, err
			}
			if n++; n == maxCounted {
				return n, nil
			}
		}
	}
	return n, nil
}
