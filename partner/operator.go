// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// Overview is a task as an operator sees it, without its contents.
type Overview struct {
	Partner, Leader, ID string

	Session string
	State   task.State // task.None while the start is pending: no caller has been answered yet
	Since   time.Time  // of State
	First   uint64     // number of the oldest event kept; Last+1 if none is
	Last    uint64     // number of the newest event; 0 if there is none yet
	Bytes   int64      // size of the events kept
	Trace   string     // id of the trace of the start, in hexadecimal digits; empty for none
}

// TaskFilter selects tasks. A field not set selects all.
type TaskFilter struct {
	Partner, Leader, Task string
	States                []task.State // task.None selects pending starts
	// MinAge and MaxAge bound the time since the last change of state.
	MinAge, MaxAge time.Duration
	// Search selects the tasks with it at the beginning of their id or Leader, and the tasks of the Partners in
	// SearchPartners.
	Search         string
	SearchPartners []string

	Session string

	ByName bool // in the order of Partners, Leaders and ids, and not of the last changes

	After string // the second result of Tasks for the page before
	Limit int    // tasks on a page; default 100, at most 1000
}

// Bounds of an operator's pages.
const (
	defaultTaskPage = 100
	maxTaskPage     = 1000
	maxTasksRead    = 10_000 // tasks from which one page is selected

	defaultEventPage = 100
	maxEventPage     = 1000
	maxEventBytes    = 1 << 20 // of the contents on a page
)

// prefix begins the names of all logs open to selection.
func (f *TaskFilter) prefix() string {
	switch {
	case f.Partner == "":
		return string(logname.Task)
	case f.Leader == "":
		return logname.OfPartner(f.Partner)
	}
	return logname.OfLeader(f.Partner, f.Leader) + f.Task
}

// selects is wants without the session and the ages.
func (f *TaskFilter) selects(partner, leader, id string, s task.State) bool {
	return f.names(partner, leader, id) && (f.States == nil || slices.Contains(f.States, s))
}

// names is wants for the parts of the name of a task's log.
func (f *TaskFilter) names(partner, leader, id string) bool {
	return (f.Partner == "" || f.Partner == partner) && (f.Leader == "" || f.Leader == leader) &&
		(f.Task == "" || f.Task == id) && (f.Search == "" || strings.HasPrefix(id, f.Search) ||
		strings.HasPrefix(leader, f.Search) || slices.Contains(f.SearchPartners, partner))
}

func (f *TaskFilter) limit() int { return min(cmp.Or(max(f.Limit, 0), defaultTaskPage), maxTaskPage) }

func (f *TaskFilter) wants(o *Overview, now time.Time) bool {
	age := now.Sub(o.Since)
	return f.selects(o.Partner, o.Leader, o.ID, o.State) && (f.Session == "" || f.Session == o.Session) &&
		(f.MinAge == 0 || age >= f.MinAge) && (f.MaxAge == 0 || age <= f.MaxAge)
}

// Tasks returns a page of the tasks of all Partners, the last changed first, and the TaskFilter.After of the next page,
// empty if there is none. A page is selected from a bounded number of tasks, so it may have fewer tasks than
// TaskFilter.Limit, or none, and a next page all the same. It reads the heads of logs only, and no task waits for it. A
// task that changes between two pages may be left out. A task with unreadable metadata is not listed.
func (e Engines) Tasks(ctx context.Context, f TaskFilter) (list []Overview, next string, err error) {
	if f.ByName {
		return e.byName(ctx, &f)
	}
	return e.newest(ctx, &f)
}

func (e Engines) byName(ctx context.Context, f *TaskFilter) (list []Overview, next string, err error) {
	after, err := base64.RawURLEncoding.DecodeString(f.After)
	if err != nil || len(after) > 0 && after[0] != logname.Task {
		return nil, "", errAfter
	}
	limit := f.limit()
	var now time.Time
	if len(e) > 0 {
		now = e[0].wall()
	}
	last, read := "", 0
	logs := make([]iter.Seq2[replay.Entry, error], len(e))
	for i, of := range e {
		logs[i] = of.store.List(ctx, f.prefix(), string(after))
	}
	byName := func(a, b replay.Entry) int { return strings.Compare(a.Log, b.Log) }
	for entry, err := range replay.Merge(byName, logs...) {
		if err != nil {
			return nil, "", listError(ctx, err)
		}
		if len(list) == limit || read == maxTasksRead {
			return list, base64.RawURLEncoding.EncodeToString([]byte(last)), nil
		}
		last = entry.Log
		read++
		if o, err := overviewOf(entry.Log, &entry.Head); err == nil && f.wants(&o, now) {
			list = append(list, o)
		}
	}
	return list, "", nil
}

// overview returns a task by the name of its log. An error is of kind TaskNotFound if there is no such task.
func (e *Engine) overview(ctx context.Context, log string) (Overview, error) {
	return overviewIn(ctx, e.store, log)
}

// overviewIn is overview in logs, also if their writer is another process.
func overviewIn(ctx context.Context, logs replay.Logs, log string) (Overview, error) {
	head, err := logs.Head(ctx, log)
	if errors.Is(err, replay.ErrNotFound) {
		_, _, id := logname.Split(log)
		return Overview{}, noSuchTask(id)
	}
	if err != nil {
		return Overview{}, listError(ctx, err)
	}
	o, err := overviewOf(log, &head)
	if err != nil {
		return Overview{}, damaged(err)
	}
	return o, nil
}

func noSuchTask(id string) error {
	return task.Errorf(task.TaskNotFound, "there is no such task; it may have ended and been dropped").
		WithData("taskId", id)
}

func overviewOf(log string, head *replay.Head) (o Overview, err error) {
	var m metadata
	if err := json.Unmarshal(head.Metadata, &m); err != nil {
		return o, err
	}
	o = Overview{Session: m.Session, State: m.State, Since: m.Changed,
		First: head.First, Last: head.Last, Bytes: head.Bytes, Trace: m.Trace.String()}
	o.Partner, o.Leader, o.ID = logname.Split(log)
	if m.Pending != nil {
		o.Since, o.Session = m.PendingAt, m.Pending.SessionID
	}
	return o, nil
}

// StoredEvent is an event of a task as it is stored.
type StoredEvent struct {
	Seq   uint64
	Kind  byte            // task.TaskEvent and so on
	Bytes int             // size of the event
	Value json.RawMessage // its content in AIP's JSON; nil if Bytes exceeds 1 MiB
	Cause json.RawMessage // the Leader's message causing it; nil if there is none, or like Value
}

// EventFilter selects events of one task.
type EventFilter struct {
	Partner, Leader, Task string

	After uint64 // those after this number
	Limit int    // events on a page; default 100, at most 1000
}

// Events returns a task and a page of its selected events, as far as they are kept, and whether there are more now. A
// page ends early when its events have 1 MiB. An error is of kind TaskNotFound if there is no such task.
func (e *Engine) Events(ctx context.Context, f EventFilter) (o Overview, list []StoredEvent, more bool, err error) {
	log, after := logname.New(f.Partner, f.Leader, f.Task), f.After
	if o, err = e.overview(ctx, log); err != nil {
		return o, nil, false, err
	}
	if after > o.Last {
		return o, nil, false, noSuchEvent(after, o.Last)
	}
	limit := min(cmp.Or(max(f.Limit, 0), defaultEventPage), maxEventPage)
	for after < o.Last && err == nil {
		list, after, err = e.readEvents(ctx, log, after, o.Last, limit)
		gone, ok := errors.AsType[*replay.CompactedError](err)
		if !ok || gone.First <= after+1 {
			break
		}
		after, err = gone.First-1, nil // all before is no longer kept, or is a gap
	}
	if err != nil {
		return o, nil, false, listError(ctx, err)
	}
	return o, list, after < o.Last, nil
}

// readEvents reads a page of the events after a number, up to last. It returns the number of the last one read. Without
// an error there is at least one event.
func (e *Engine) readEvents(
	ctx context.Context, log string, after, last uint64, limit int,
) (list []StoredEvent, _ uint64, err error) {
	reader := e.store.Read(log, after)
	defer reader.Close()
	size := 0
	for after < last {
		records, _, err := reader.Next(ctx, nil)
		if len(records) == 0 && len(list) > 0 { // the rest is a page of its own, or its error
			break
		}
		if len(records) == 0 {
			return nil, after, cmp.Or(err, replay.ErrUnavailable)
		}
		for _, r := range records {
			if len(r.Data) <= maxEventBytes {
				size += len(r.Data)
			}
			if len(list) == limit || size > maxEventBytes && len(list) > 0 {
				return list, after, nil
			}
			ev, err := storedEvent(r)
			if err != nil {
				return nil, after, err
			}
			list, after = append(list, ev), r.Seq
		}
	}
	return list, after, nil
}

// storedEvent returns the event in a record. It keeps no reference to the record.
func storedEvent(r replay.Record) (StoredEvent, error) {
	ev := StoredEvent{Seq: r.Seq, Bytes: len(r.Data)}
	var value, cause []byte
	ev.Kind, value, cause = task.SplitEvent(r.Data)
	if !json.Valid(value) || cause != nil && !json.Valid(cause) {
		return ev, fmt.Errorf("event %d is not JSON", r.Seq)
	}
	if ev.Bytes <= maxEventBytes {
		ev.Value, ev.Cause = bytes.Clone(value), bytes.Clone(cause)
	}
	return ev, nil
}

func noSuchEvent(after, last uint64) error {
	return task.Errorf(task.InvalidParams, "the task has no event %d yet; the last one is %d", after, last).
		WithField("after")
}
