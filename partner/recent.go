// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"cmp"
	"context"
	"encoding/base64"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// keys returns the keys of the selected states.
func (f *TaskFilter) keys() (keys []string) {
	states := f.States
	if states == nil {
		states = append(task.States(), task.None)
	}
	for i, s := range states {
		switch {
		case slices.Contains(states[:i], s):
		case s == task.None:
			keys = append(keys, pendingKey, tentativeKey)
		case s == task.AwaitingInput:
			keys = append(keys, stateKey(s, true), stateKey(s, false))
		default:
			keys = append(keys, stateKey(s, false))
		}
	}
	return keys
}

// Bounds of the tasks from which a page is selected.
const (
	maxListed = 40_000 // places in lists
	maxFew    = 1000   // tasks with an id, or at a Partner, put in order here
)

// candidate is a possible task of a page, and its place in the order of the last changes.
type candidate struct {
	replay.ListedLog
	of    *Engine
	known *Overview // nil if its log has not been read
}

func (c candidate) compare(d candidate) int { return c.ListedLog.Compare(d.ListedLog) }

// overview returns the task. It is nil if the task has been dropped meanwhile, or is damaged.
func (c candidate) overview(ctx context.Context) (*Overview, error) {
	if c.known != nil {
		return c.known, nil
	}
	o, err := c.of.overview(ctx, c.Log)
	switch {
	case err != nil && isPassing(err):
		return nil, err
	case err != nil:
		return nil, nil
	}
	return &o, nil
}

// listsOf returns the names of the lists with the tasks in a state, as far as a filter may select them.
func (e *Engine) listsOf(f *TaskFilter, key string, partners []string) (lists []string) {
	if f.Leader == "" || key == pendingKey {
		return []string{listsOfAll[key]}
	}
	for _, partner := range partners {
		lists = append(lists, logname.ListOfState(partner, f.Leader, key))
	}
	return lists
}

// listed yields the places in a list after a given one.
func (e *Engine) listed(ctx context.Context, list string, after replay.ListedLog) iter.Seq2[candidate, error] {
	return func(yield func(candidate, error) bool) {
		for l, err := range e.store.Listed(ctx, list, after) {
			if !yield(candidate{ListedLog: l, of: e}, err) {
				return
			}
		}
	}
}

// partnersOf returns the names of the Partners with tasks, as far as a filter may select them.
func (e *Engine) partnersOf(ctx context.Context, f *TaskFilter) (names []string, err error) {
	if f.Partner != "" {
		return []string{f.Partner}, nil
	}
	for next, after := "", ""; ; next = "" {
		for entry, err := range e.store.List(ctx, string(logname.Task), after) {
			if err != nil {
				return nil, err
			}
			next, _, _ = logname.Split(entry.Log)
			break
		}
		if next == "" {
			return names, nil
		}
		names, after = append(names, next), logname.BehindPartner(next)
	}
}

// few appends the tasks with the id of a filter, or else the tasks at its Partner. It reports false if there are more
// than maxFew.
func (e *Engine) few(ctx context.Context, f *TaskFilter, all []candidate) (_ []candidate, ok bool, err error) {
	add := func(c candidate, o *Overview) bool {
		c.At, c.of, c.known = o.Since, e, o
		all = append(all, c)
		return len(all) <= maxFew
	}
	if f.Task == "" {
		for entry, err := range e.store.List(ctx, f.prefix(), "") {
			if err != nil {
				return nil, false, err
			}
			o, err := overviewOf(entry.Log, &entry.Head)
			if err == nil && !add(candidate{ListedLog: replay.ListedLog{Log: entry.Log}}, &o) {
				return nil, false, nil
			}
		}
		return all, true, nil
	}
	partners, err := e.partnersOf(ctx, f)
	if err != nil {
		return nil, false, err
	}
	for _, partner := range partners {
		for c, err := range e.listed(ctx, logname.ListOfID(partner, f.Task), replay.ListedLog{}) {
			var o *Overview
			if err == nil {
				o, err = c.overview(ctx)
			}
			if err != nil {
				return nil, false, err
			}
			if o != nil && !add(c, o) {
				return nil, false, nil
			}
		}
	}
	return all, true, nil
}

// few is Engine.few of all engines: the tasks are in the order of their last changes. It reports false, too, for a
// filter with neither an id nor a Partner alone.
func (e Engines) few(ctx context.Context, f *TaskFilter) (all []candidate, ok bool, err error) {
	if f.Task == "" && (f.Partner == "" || f.Leader != "") {
		return nil, false, nil
	}
	for _, of := range e {
		if all, ok, err = of.few(ctx, f, all); err != nil || !ok {
			return nil, false, err
		}
	}
	slices.SortFunc(all, candidate.compare)
	return all, true, nil
}

// candidates yields tasks after a given one. All tasks selected by the filter are among them.
func (e Engines) candidates(
	ctx context.Context, f *TaskFilter, after replay.ListedLog,
) (iter.Seq2[candidate, error], error) {
	few, ok, err := e.few(ctx, f)
	if err != nil {
		return nil, err
	}
	if ok {
		return func(yield func(candidate, error) bool) {
			for _, c := range few {
				if (after.Log == "" || after.Compare(c.ListedLog) < 0) && !yield(c, nil) {
					return
				}
			}
		}, nil
	}
	var all []iter.Seq2[candidate, error]
	for _, of := range e {
		var partners []string
		if f.Leader != "" {
			if partners, err = of.partnersOf(ctx, f); err != nil {
				return nil, err
			}
		}
		for _, key := range f.keys() {
			for _, list := range of.listsOf(f, key, partners) {
				all = append(all, of.listed(ctx, list, after))
			}
		}
	}
	return replay.Merge(candidate.compare, all...), nil
}

// newest returns a page of tasks, the last changed first.
func (e Engines) newest(ctx context.Context, f *TaskFilter) (list []Overview, next string, err error) {
	last, err := parseRecent(f.After)
	if err != nil || len(e) == 0 {
		return nil, "", err
	}
	now := e[0].wall()
	if youngest := now.Add(-f.MinAge); f.MinAge > 0 && (last.Log == "" || last.At.After(youngest)) {
		last = replay.ListedLog{At: youngest, Log: string(logname.Task)} // no log changed at that time comes before
	}
	all, err := e.candidates(ctx, f, last)
	if err != nil {
		return nil, "", listError(ctx, err)
	}
	limit, read, seen := f.limit(), 0, make(map[string]bool)
	for c, err := range all {
		switch {
		case err != nil:
			return nil, "", listError(ctx, err)
		case f.MaxAge > 0 && now.Sub(c.At) > f.MaxAge:
			return list, "", nil
		case len(list) == limit || read == maxListed:
			return list, formatRecent(last), nil
		}
		read++
		last = c.ListedLog
		if seen[c.Log] || !f.names(logname.Split(c.Log)) {
			continue
		}
		o, err := c.overview(ctx)
		if err != nil {
			return nil, "", listError(ctx, err)
		}
		if o != nil && f.wants(o, now) {
			seen[c.Log] = true // it may come again, if it changes meanwhile
			list = append(list, *o)
		}
	}
	return list, "", nil
}

// Cursor returns the TaskFilter.After of a page beginning behind a task, in the order of the last changes.
func (o *Overview) Cursor() string {
	return formatRecent(replay.ListedLog{At: o.Since, Log: logname.New(o.Partner, o.Leader, o.ID)})
}

// CompareCursors orders cursors: the first one in a list is less. Unreadable ones come last.
func CompareCursors(a, b string) int {
	one, err1 := parseRecent(a)
	two, err2 := parseRecent(b)
	if err1 != nil || err2 != nil {
		return cmp.Compare(a, b)
	}
	return one.Compare(two)
}

func formatRecent(l replay.ListedLog) string {
	at := "-"
	if !l.At.IsZero() {
		at = strconv.FormatInt(l.At.UnixNano(), 10)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(at + " " + l.Log))
}

func parseRecent(cursor string) (l replay.ListedLog, err error) {
	if cursor == "" {
		return l, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	at, log, ok := strings.Cut(string(raw), " ")
	if err != nil || !ok || log == "" || log[0] != logname.Task {
		return l, errAfter
	}
	if l.Log = log; at == "-" {
		return l, nil
	}
	nano, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return l, errAfter
	}
	l.At = time.Unix(0, nano)
	return l, nil
}

var errAfter = task.Errorf(task.InvalidParams, "after must be the value that the page before returned").
	WithField("after")

// TaskCount is the number of tasks in a state.
type TaskCount struct {
	State task.State
	Count int
	More  bool // there are more; see maxCounted
}

// Count returns the numbers of the tasks selected by a filter, by their states. It disregards the filter's states and
// ages.
func (e Engines) Count(ctx context.Context, f TaskFilter) (counts []TaskCount, err error) {
	few, ok, err := e.few(ctx, &f)
	if err != nil {
		return nil, listError(ctx, err)
	}
	for _, s := range append([]task.State{task.None}, task.States()...) {
		c := TaskCount{State: s}
		if ok {
			for i := range few {
				if o := few[i].known; o.State == s && f.names(o.Partner, o.Leader, o.ID) {
					c.Count++
				}
			}
		} else {
			f.States = []task.State{s}
			for _, of := range e {
				if err := of.countState(ctx, &f, &c); err != nil {
					return nil, listError(ctx, err)
				}
			}
		}
		counts = append(counts, c)
	}
	return counts, nil
}

// countState adds to the count of a state.
func (e *Engine) countState(ctx context.Context, f *TaskFilter, c *TaskCount) error {
	if _, live := liveState(c.State); live && f.Partner+f.Leader+f.Search == "" && e.states.complete.Load() {
		c.Count += int(e.InState(c.State))
		return nil
	}
	var partners []string
	if f.Leader != "" {
		var err error
		if partners, err = e.partnersOf(ctx, f); err != nil {
			return err
		}
	}
	for _, key := range f.keys() {
		read := 0
		for _, list := range e.listsOf(f, key, partners) {
			for l, err := range e.store.Listed(ctx, list, replay.ListedLog{}) {
				if err != nil {
					return err
				}
				if read++; read > maxCounted {
					c.More = true
					break
				}
				if f.names(logname.Split(l.Log)) {
					c.Count++
				}
			}
		}
	}
	return nil
}
