// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// The routes of tasks.
const (
	Tasks      = "/aip/tasks"        // GET: TaskPage
	TaskCounts = "/aip/tasks/counts" // GET: TaskCountList
	TaskEvents = "/aip/tasks/events" // GET: EventPage
	ShowTask   = "/aip/tasks/show"   // GET: TaskContents
	TailTasks  = "/aip/tasks/tail"   // GET: a stream of server-sent events; see TailChange
	CancelTask = "/aip/tasks/cancel" // POST TaskEnding: Task
	FailTask   = "/aip/tasks/fail"   // POST TaskEnding: Task
)

// PendingTask is the state of a task whose start waits for the agent: no caller has been answered yet.
const PendingTask task.State = "pending"

// TaskName names a task.
type TaskName struct {
	Partner string `json:"partner"` // the name under which its tasks are stored: its AIC, or its agent's URL
	Leader  string `json:"leader"`
	Task    string `json:"task"`
}

// Task is a task without its contents.
type Task struct {
	TaskName
	Of
	OfAgent

	Session string     `json:"session"`
	State   task.State `json:"state"` // or PendingTask
	Since   time.Time  `json:"since"` // of state
	First   uint64     `json:"first"` // number of the oldest event kept; last+1 if none is
	Last    uint64     `json:"last"`  // number of the newest event; 0 if there is none yet
	Bytes   int64      `json:"bytes"` // size of the events kept
	// TraceID is the id of the trace of its start, if that had one.
	TraceID string `json:"trace_id,omitempty"`
	// Reason is the beginning of what the status says, in a list, of a task that failed, was rejected or was canceled.
	Reason string `json:"reason,omitempty"`
}

// TaskCount is how many tasks are in a state.
type TaskCount struct {
	State task.State `json:"state"` // or PendingTask
	Count int        `json:"count"`
	More  bool       `json:"more,omitempty"` // there are more than are counted
}

// TaskCountList has the states in which there are tasks.
type TaskCountList struct {
	Partial

	Counts []TaskCount `json:"counts"`
}

// The orders of a list of tasks.
const (
	SortNewest = "newest" // those that have changed last first
	SortName   = "name"   // by their Partners, Leaders and ids
)

// TaskEnding names a task that the operator ends, and says why.
type TaskEnding struct {
	TaskName

	Reason string `json:"reason,omitempty"` // becomes a part of the task's status; at most 1 KiB
}

// TaskPage is a page of tasks. It may be empty and have a next page all the same.
type TaskPage struct {
	Partial

	Tasks []Task `json:"tasks"`
	Next  string `json:"next,omitempty"` // the parameter after of the next page; empty on the last one
}

// The kinds of events.
const (
	TaskKind    = "task"    // the whole task: the first event
	StatusKind  = "status"  // a change of state, or more about the present one
	ProductKind = "product" // a product, or a piece of one
	MessageKind = "message" // a message of the Partner
)

// Event is an event of a task.
type Event struct {
	Seq   uint64          `json:"seq"`
	Kind  string          `json:"kind"`
	Bytes int             `json:"bytes"`           // size of the stored event
	Value json.RawMessage `json:"value,omitempty"` // in AIP's JSON; missing if bytes exceeds 1 MiB
	Cause json.RawMessage `json:"cause,omitempty"` // the Leader's message that caused it, likewise
}

// Decode returns the event; only its Seq and Cause if the value is missing.
func (e *Event) Decode() (ev task.Event, err error) {
	ev.Seq = e.Seq
	if e.Cause != nil {
		ev.Cause = new(task.Message)
		err = json.Unmarshal(e.Cause, ev.Cause)
	}
	if err != nil || e.Value == nil {
		return ev, err
	}
	switch e.Kind {
	case TaskKind:
		ev.Task = new(task.Task)
		err = json.Unmarshal(e.Value, ev.Task)
	case StatusKind:
		ev.Status = new(task.Status)
		err = json.Unmarshal(e.Value, ev.Status)
	case ProductKind:
		ev.Chunk = new(task.Chunk)
		err = json.Unmarshal(e.Value, ev.Chunk)
	case MessageKind:
		ev.Message = new(task.Message)
		err = json.Unmarshal(e.Value, ev.Message)
	default:
		err = fmt.Errorf("an event of the unknown kind %q", e.Kind)
	}
	return ev, err
}

// EventPage is a task with a page of its events.
type EventPage struct {
	Task      Task    `json:"task"`
	TraceLink string  `json:"trace_link,omitempty"` // of Task.TraceID; missing where the configuration has none
	Events    []Event `json:"events"`
	Next      uint64  `json:"next,omitempty"` // the parameter after of the next page; missing on the last one
}

// TaskContents is a task with its result, and with the states that it has had.
type TaskContents struct {
	Task      Task   `json:"task"`
	TraceLink string `json:"trace_link,omitempty"` // of Task.TraceID; missing where the configuration has none
	Group     string `json:"group,omitempty"`      // missing outside of groups

	Said         []Item    `json:"said,omitempty"`          // by the agent, with the present state
	Products     []Product `json:"products,omitempty"`      // that the task offers
	MoreProducts int       `json:"more_products,omitempty"` // that are left out, beyond 1000

	States        []StateChange `json:"states"`                   // the newest 1000, the oldest first
	EarlierStates int           `json:"earlier_states,omitempty"` // that are left out
	Commands      []CommandAt   `json:"commands"`                 // of the Leader, likewise
}

// Product is a product of a task. The items of all products have at most 1 MiB together.
type Product struct {
	ID          string `json:"id"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	Bytes       int64  `json:"bytes"` // size of all items
	Items       []Item `json:"items,omitempty"`
	Cut         bool   `json:"cut,omitempty"` // something is left out
}

// Item is a data item of AIP without its metadata.
type Item struct {
	Kind     task.ItemKind   `json:"type"`
	Text     string          `json:"text,omitempty"`
	Name     string          `json:"name,omitempty"`
	MIMEType string          `json:"mime_type,omitempty"`
	URI      string          `json:"uri,omitempty"`
	Bytes    string          `json:"bytes,omitempty"` // base64
	Data     json.RawMessage `json:"data,omitempty"`
	Cut      bool            `json:"cut,omitempty"` // the rest of a text is left out, or what another item has
}

// StateChange is a state of a task and since when it had that.
type StateChange struct {
	State task.State `json:"state"`
	At    time.Time  `json:"at"`
}

// CommandAt is a command of a Leader.
type CommandAt struct {
	Command task.Command `json:"command"`
	At      time.Time    `json:"at"`
}

// The names of the server-sent events of TailTasks. A query that names a task is answered with its events, and every
// other one with the changes of state of the tasks that it selects.
const (
	TailChange = "change" // TaskChange
	TailEvent  = "event"  // Event; the id of the server-sent event is its number
	TailLost   = "lost"   // Lost
	TailEnd    = "end"    // Task: the task that is followed has ended, and all its events were sent
)

// TaskChange is a change of a task's state.
type TaskChange struct {
	TaskName
	OfAgent

	Session string     `json:"session"`
	State   task.State `json:"state"` // or PendingTask
	Since   time.Time  `json:"since"` // of state
	Last    uint64     `json:"last"`  // number of the event of the change; 0 for a pending task
}

// Lost says what a stream leaves out: changes, because they happen faster than they are read, or while the client's
// gateway did not reach that of the task; or events, because they are no longer kept.
type Lost struct {
	Changes uint64 `json:"changes,omitempty"` // how many
	Gateway string `json:"gateway,omitempty"` // it has stopped, or begun again: it is not known how many of its changes
	Events  uint64 `json:"events,omitempty"`  // those up to this number
}

// Flags of commands about tasks.
var (
	ofTask = []Flag{
		{"partner", "of this Partner: its name, its AIC, or its agent's URL", false}, {"leader", "of this Leader", false},
	}
	ofState  = Flag{"state", "pending, or a state of AIP; may be repeated", true}
	selected = []Flag{
		{"min-age", "whose state has not changed for this time, such as 10m or 2d", false},
		{"max-age", "whose state has changed within this time", false},
		{"since", "whose state has changed since then: a time such as 2026-03-01T10:00:00Z, or 10m for as long ago", false},
		{"search", "whose id, Leader or agent begins with this text", false},
	}
	ending = slices.Concat([]Flag{{"reason", "why; the Leader sees it in the status of the task", false}, ofState},
		selected, ofTask)
)

// Cancelable returns the states in which an operator can cancel a task.
func Cancelable() []string {
	return []string{string(PendingTask), string(task.Accepted), string(task.Working), string(task.AwaitingInput),
		string(task.AwaitingCompletion)}
}

// Failable returns the states in which an operator can end a task as failed: its agent works on it.
func Failable() []string {
	return []string{string(PendingTask), string(task.Accepted), string(task.Working)}
}

// taskRoutes are the routes of tasks, and their commands.
var taskRoutes = []Route{
	{
		Path: Tasks, Method: "GET", Console: MayRead,
		Query: []string{"partner", "leader", "task", "session", "search", "state", "min_age", "max_age", "since",
			"sort", "after", "limit"},
		Commands: []Command{{
			Name:  "tasks list",
			Args:  "[--state <state>] [--since <time>] [--search <text>] [--partner <name>] [...]",
			Short: "Lists the tasks of the gateway",
			Long: `
Lists the tasks of the gateway, those that have ended included while they are kept.
Those that have changed last come first. A task is pending until its Leader gets the
first answer. The age of a task is the time since its last change of state. REASON is
why a task failed, was rejected or was canceled.
`,
			Example: `  $ caddy aip tasks list
  $ caddy aip tasks list --since 10m --search travel
  $ caddy aip tasks list --state working --min-age 1h
  $ caddy aip tasks list --state failed --max-age 1d --json`,
			Flags: slices.Concat([]Flag{ofState}, selected, []Flag{
				{"sort", "newest (the last changes first), or name (by agent, Leader and id)", false},
				{"session", "of this session", false},
			}, ofTask),
		}},
	},
	{
		Path: TaskCounts, Method: "GET", Console: MayRead, Query: []string{"partner", "leader", "search"},
	},
	{
		Path: TaskEvents, Method: "GET", Console: MayRead,
		Query: []string{"partner", "leader", "task", "after", "limit"},
		Commands: []Command{{
			Name:  "tasks show",
			Args:  "<task> [--after <event>] [--leader <aic>] [--partner <name>]",
			Short: "Shows a task with its events",
			Long: `
Shows a task with its events, and the Leader's messages that caused them. If several
Leaders or Partners have a task with this id, say which.
`,
			Example: `  $ caddy aip tasks show task-1
  $ caddy aip tasks show task-1 --after 100 --json`,
			Flags: ofTask,
		}},
	},
	{
		Path: ShowTask, Method: "GET", Console: MayRead,
		Query: []string{"partner", "leader", "task"},
	},
	{
		Path: TailTasks, Method: "GET", Console: MayRead,
		Query: []string{"partner", "leader", "task", "state", "after"},
		Commands: []Command{{
			Name:  "tasks tail",
			Args:  "[<task>] [--state <state>] [--after <event>] [--leader <aic>] [--partner <name>]",
			Short: "Prints changes of tasks, or the events of one task, as they happen",
			Long: `
Prints the changes of state of all tasks as they happen, or the events of one task, until
it has ended. After a reload of Caddy it continues: with a task at the next event, without
one at the present, so that changes may be missing. Ctrl-C ends it.
`,
			Example: `  $ caddy aip tasks tail --state failed --state awaiting-input
  $ caddy aip tasks tail task-1 --after 0`,
			Flags: append([]Flag{ofState}, ofTask...),
		}},
	},
	{
		Path: CancelTask, Method: "POST", Console: MayCancel,
		Commands: []Command{{
			Name:  "tasks cancel",
			Args:  "[<task>] [--state <state>] [--min-age <time>] [--reason <text>] [--partner <name>] [...]",
			Short: "Cancels a task, or those that a filter selects, as the operator",
			Long: `
Cancels a task that has not ended. Its agent is asked to stop, as if the Leader had
canceled the task, and the status says that the operator of the gateway did it, and
why. The Leader sees that. If several Leaders or Partners have a task with this id, say
which. Without a task, it cancels those that the flags select, 1000 at most: it says
how many they are, and asks before.
`,
			Example: `  $ caddy aip tasks cancel task-1 --reason "the agent is taken out of service"
  $ caddy aip tasks cancel --partner travel-planner --state working --min-age 1h`,
			Flags: ending,
		}},
	},
	{
		Path: FailTask, Method: "POST", Console: MayFail,
		Commands: []Command{{
			Name:  "tasks fail",
			Args:  "[<task>] [--state <state>] [--min-age <time>] [--reason <text>] [--partner <name>] [...]",
			Short: "Ends a task, or those that a filter selects, as failed, as the operator",
			Long: `
Ends a task that its agent works on as failed. The agent is asked to stop, but the task
fails whatever it answers. The status says that the operator of the gateway did it, and
why. The Leader sees that. If several Leaders or Partners have a task with this id, say
which. Without a task, it fails those that the flags select, 1000 at most: it says how
many they are, and asks before.
`,
			Example: `  $ caddy aip tasks fail task-1 --reason "the agent has lost its data"
  $ caddy aip tasks fail --partner travel-planner --min-age 1h --reason "the agent hangs"`,
			Flags: ending,
		}},
	},
}
