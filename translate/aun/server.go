// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun/codes"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// The visibilities of a task, by its readers.
const (
	Private = "private" // its owner and its assignee
	Shared  = "shared"  // its participants, too
	Public  = "public"  // every connected client
)

// Relation has the members of a task that only AUN has. A front keeps it.
type Relation struct {
	Owner        string   // AID
	Assignee     string   // AID
	Participants []string // AIDs, without the owner and the assignee
	Visibility   string
	Parent       string   // the task that this one is a part of; empty for none
	Children     []string // the tasks that are parts of this one
}

// Server is the side of AUN towards callers, for one task or for the tasks of an assignee: a task has members beside
// the canon's.
type Server struct {
	// Confirm makes a task awaiting completion input_required for callers. Otherwise it is completed as soon as its agent
	// has finished.
	Confirm bool
	Relation
	// Task is the id of a call's task, if the front has found it or makes it; empty for the one named in its params.
	Task string
	// Next is the next assignee of a list: its tasks come after those of Assignee; empty for none.
	Next string
	// FromNow makes a stream begin without the task as it is, unless the stream continues after an event.
	FromNow bool
}

// Name implements translate.Server.
func (Server) Name() string { return Name }

// Route implements translate.Server. AUN has no paths: its frames come by a connection that knows the dialect.
func (Server) Route(string, string) (translate.Route, bool) { return translate.Route{}, false }

// Matches implements translate.Server.
func (Server) Matches(req *translate.Request) bool { return strings.HasPrefix(req.Method, "task.") }

// Decode implements translate.Server.
func (s Server) Decode(req *translate.Request) (translate.Call, error) {
	return s.Read(req.Method, req.Params)
}

// Read reads an owner's commands. A subscribe names one task. The call keeps nothing of params.
func (s Server) Read(method string, params gjson.Result) (translate.Call, error) {
	r := wire.Reader{Prefix: "params."}
	var call translate.Call
	m := &call.Message
	m.SenderRole = task.Leader
	if method == List && !params.Exists() {
		params = gjson.Parse("{}")
	}
	if !r.Object(params, "") {
		return translate.Call{}, r.Err
	}
	call.Tentative = true
	switch method {
	case Create, Delegate:
		if call.Method = Create; method == Delegate {
			call.Method = Delegate
		}
		m.Command, call.AutoComplete, call.Followed = task.Start, !s.Confirm, true
		call.Terms.Response, call.History = task.NoWait, 1 // see created
		m.TaskID = s.Task
		readInput(&r, params, m)
	case SendInput:
		call.Method, m.Command, call.Strict, call.Followed = SendInput, task.Continue, true, true
		call.Terms.Response = task.NoWait
		s.readTask(&r, params, m)
		readInput(&r, params, m)
	case Cancel:
		call.Method, m.Command, call.Strict = Cancel, task.Cancel, true
		s.readTask(&r, params, m)
		if reason := r.Bounded(jsonrpc.Member(params, "reason"), "reason", maxReason); reason != "" {
			m.DataItems = []task.DataItem{task.Text(strings.Clone(reason))}
		}
	case Get:
		call.Method, m.Command, call.History = Get, task.Get, -1
		s.readTask(&r, params, m)
	case Subscribe:
		call.Method, m.Command, call.Stream, call.Snapshot = Subscribe, task.ReStream, true, true
		s.readTask(&r, params, m)
	case List:
		call.Method, call.Op, m.Command = List, translate.ListTasks, task.Get
		call.List = s.readList(&r, params)
	default:
		r.Err = task.Errorf(task.MethodNotFound, "there is no such method; see task.create")
	}
	if r.Err != nil {
		return translate.Call{}, r.Err
	}
	return call, nil
}

const (
	maxReason = 4 << 10 // bytes of a reason
	maxPage   = 100     // tasks on a page
)

func (s Server) readTask(r *wire.Reader, params gjson.Result, m *task.Message) {
	if m.TaskID = s.Task; m.TaskID != "" {
		return
	}
	m.TaskID = r.RequiredID(jsonrpc.Member(params, "task_id"), "task_id")
	wire.Own(&m.TaskID)
}

// readInput reads an input, and the id of its message. A caller that has lost the answer repeats the message with the
// same id.
func readInput(r *wire.Reader, params gjson.Result, m *task.Message) {
	m.ID = r.ID(jsonrpc.Member(params, "message_id"), "message_id")
	wire.Own(&m.ID)
	input := jsonrpc.Member(params, "input")
	if !input.Exists() {
		r.Fail("input", "input is missing; it must be an object with a type and a content")
		return
	}
	items, ok := ReadContent(input)
	if !ok {
		r.Fail("input", "input must be an object with a type (text, json, file or multipart) and its content")
	}
	m.DataItems = items
}

// readList reads the params of task.list. Its cursor is the assignee, and behind it the cursor of the assignee's list.
func (s Server) readList(r *wire.Reader, params gjson.Result) *task.List {
	l := &task.List{Size: int(min(r.Count(jsonrpc.Member(params, "limit"), "limit"), maxPage))}
	status := r.Text(jsonrpc.Member(params, "status"), "status")
	switch {
	case status == "":
	case status == "completed" && !s.Confirm:
		l.States = []task.State{task.AwaitingCompletion, task.Completed}
	case status == "completed":
		l.States = []task.State{task.Completed}
	case status == "input_required" && s.Confirm:
		l.States = []task.State{task.AwaitingInput, task.AwaitingCompletion}
	default:
		state, ok := State(status)
		if !ok {
			r.Fail("status", "status must be submitted, working, input_required, completed, failed, canceled or rejected")
		}
		l.States = []task.State{state}
	}
	_, l.Token, _ = strings.Cut(strings.Clone(r.Bounded(jsonrpc.Member(params, "cursor"), "cursor", wire.MaxURL)), " ")
	return l
}

// AppendTask implements translate.Server.
func (s Server) AppendTask(dst []byte, id jsonrpc.ID, c *translate.Call, t *task.Task) []byte {
	begin := len(dst)
	dst = jsonrpc.BeginResult(dst, id)
	switch c.Method {
	case Get:
		dst = s.appendTask(dst, t, true)
	case Create, Delegate:
		dst = append(s.appendHead(append(dst, '{'), created(t)), '}')
	default:
		dst = append(s.appendHead(append(dst, '{'), t), '}')
	}
	dst = jsonrpc.End(dst)
	if size := len(dst) - begin; size > MaxFrame {
		return AppendError(dst[:begin], id, tooLarge(t, size))
	}
	return dst
}

// tooLarge returns the error of a task too large for a frame, with the sizes of its artifacts.
func tooLarge(t *task.Task, size int) *task.Error {
	type artifact struct {
		ID   string `json:"id"`
		Size int64  `json:"size"`
	}
	var list []artifact
	for i := range t.Products[:min(len(t.Products), wire.MaxItems)] {
		list = append(list, artifact{t.Products[i].ID, task.ProductsSize(t.Products[i : i+1])})
	}
	return refuse(task.LimitExceeded, codes.TaskTooLarge, "Task output too large",
		"the task does not fit into a frame").WithData("task_id", t.ID).WithData("size", size).
		WithData("max", MaxFrame).WithData("artifacts", list)
}

// created returns a task as the answer to its creation shows it: submitted, working or rejected, even if the agent has
// done more by then. The rest comes as events.
func created(t *task.Task) *task.Task {
	switch t.Status.State {
	case task.None, task.Accepted, task.Working, task.Rejected:
		return t
	}
	if len(t.StatusHistory) == 0 {
		return t
	}
	begun := *t
	begun.Status = t.StatusHistory[0]
	return &begun
}

// appendHead appends the members of a task in every answer, behind the brace.
func (s Server) appendHead(dst []byte, t *task.Task) []byte {
	dst = task.AppendString(append(dst, `"task_id":`...), t.ID)
	dst = task.AppendString(append(dst, `,"status":`...), StateName(t.Status.State, s.Confirm))
	dst = task.AppendString(append(dst, `,"owner":`...), s.Owner)
	dst = task.AppendString(append(dst, `,"assignee":`...), s.Assignee)
	dst = wire.AppendOptional(dst, `,"visibility":`, s.Visibility)
	dst = wire.AppendOptional(dst, `,"parent_task_id":`, s.Parent)
	var created time.Time // unknown for a later state without the history
	switch state := t.Status.State; {
	case len(t.StatusHistory) > 0:
		created = t.StatusHistory[0].ChangedAt
	case state == task.None || state == task.Accepted:
		created = t.Status.ChangedAt
	}
	dst = appendTime(dst, `,"created_at":`, created)
	return appendTime(dst, `,"updated_at":`, t.Status.ChangedAt)
}

// appendTask appends a whole task.
func (s Server) appendTask(dst []byte, t *task.Task, messages bool) []byte {
	dst = s.appendHead(append(dst, '{'), t)
	dst = wire.AppendStrings(dst, `,"participants":`, s.Participants)
	dst = append(dst, `,"children":[`...)
	for i, id := range s.Children {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(task.AppendString(append(dst, `{"task_id":`...), id), '}')
	}
	dst = append(dst, ']')
	dst = appendSaid(dst, shown(t))
	if messages {
		if history := t.MessageHistory; len(history) > 0 {
			dst = AppendContent(append(dst, `,"input":`...), history[0].DataItems)
		}
		dst = s.appendMessages(dst, t)
	}
	dst = append(dst, `,"artifacts":[`...)
	for i := range t.Products {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendArtifact(dst, &t.Products[i])
	}
	return append(dst, ']', '}')
}

// appendMessages appends the messages after the first one: those of the owner, and the agent's words while it worked,
// or when it asked.
func (s Server) appendMessages(dst []byte, t *task.Task) []byte {
	dst = append(dst, `,"messages":[`...)
	sep := ""
	add := func(from task.Role, at time.Time, items []task.DataItem) {
		if len(items) > 0 {
			dst = task.AppendString(append(append(dst, sep...), `{"from":`...), s.sender(from))
			dst = appendTime(dst, `,"sent_at":`, at)
			dst = append(appendMembers(append(dst, ','), "", items), '}')
			sep = ","
		}
	}
	last := &task.Message{}
	for i := 1; i < len(t.MessageHistory); i++ {
		last = &t.MessageHistory[i]
		add(last.SenderRole, last.SentAt, last.DataItems)
	}
	now := shown(t)
	name := StateName(now.State, s.Confirm)
	again := last.SenderRole == task.Partner && slices.EqualFunc(last.DataItems, now.DataItems, task.DataItem.Equal)
	if !again && (name == "working" || name == "input_required") {
		add(task.Partner, now.ChangedAt, now.DataItems)
	}
	return append(dst, ']')
}

// shown returns the status with the message to show with a task. A task completed without a message shows that of
// awaiting completion, as most callers do not see this state.
func shown(t *task.Task) *task.Status {
	if t.Status.State == task.Completed && len(t.Status.DataItems) == 0 {
		for i := len(t.StatusHistory) - 1; i >= 0; i-- {
			if h := &t.StatusHistory[i]; h.State == task.AwaitingCompletion {
				return h
			}
		}
	}
	return &t.Status
}

// sender returns the AID of a role.
func (s Server) sender(r task.Role) string {
	if r == task.Partner {
		return s.Assignee
	}
	return s.Owner
}

// appendSaid appends the agent's words with its state: a message, and in a failed, rejected or canceled state the
// reason, too.
func appendSaid(dst []byte, s *task.Status) []byte {
	if len(s.DataItems) == 0 {
		return dst
	}
	dst = AppendContent(append(dst, `,"message":`...), s.DataItems)
	switch s.State {
	case task.Failed, task.Rejected, task.Canceled:
		for i := range s.DataItems {
			if it := &s.DataItems[i]; it.Kind == task.TextItem {
				return wire.AppendOptional(dst, `,"reason":`, it.Text)
			}
		}
	}
	return dst
}

// appendTime appends a member with a time in UTC, unless it is zero.
func appendTime(dst []byte, key string, t time.Time) []byte {
	if t.IsZero() {
		return dst
	}
	return task.AppendTime(append(dst, key...), t.UTC())
}

// AppendTasks implements translate.Lister.
func (s Server) AppendTasks(dst []byte, id jsonrpc.ID, _ *translate.Call, page *task.Page) []byte {
	dst = append(jsonrpc.BeginResult(dst, id), `{"tasks":[`...)
	for i := range page.Tasks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(s.appendHead(append(dst, '{'), &page.Tasks[i]), '}')
	}
	dst = append(dst, `],"next_cursor":`...)
	switch {
	case page.Next != "":
		dst = task.AppendString(dst, s.Assignee+" "+page.Next)
	case s.Next != "":
		dst = task.AppendString(dst, s.Next+" ")
	default:
		return jsonrpc.End(append(dst, `null,"has_more":false}`...))
	}
	return jsonrpc.End(append(dst, `,"has_more":true}`...))
}

// ListedAssignee returns the assignee in a cursor of task.list; empty for the first one.
func ListedAssignee(cursor string) string {
	aid, _, _ := strings.Cut(cursor, " ")
	return aid
}

// AppendWebhooks implements translate.Server. AUN has no webhooks.
func (s Server) AppendWebhooks(dst []byte, id jsonrpc.ID, _ *translate.Call, _ []task.Webhook) []byte {
	return s.AppendError(dst, id, task.Errorf(task.NotificationNotSupported, "AUN has no webhooks"))
}

// AppendError implements translate.Server.
func (Server) AppendError(dst []byte, id jsonrpc.ID, err error) []byte {
	return AppendError(dst, id, err)
}

// AppendNotification implements translate.Server. AUN has no webhooks, so it is never sent.
func (s Server) AppendNotification(dst []byte, t *task.Task) []byte {
	return s.appendTask(dst, t, true)
}

// NotificationHeader implements translate.Server.
func (Server) NotificationHeader(*task.Webhook) []translate.Field { return nil }

// Interface guards.
var (
	_ translate.Server = Server{}
	_ translate.Lister = Server{}
)
