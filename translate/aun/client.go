// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"bytes"
	"hash/crc32"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/aun/codes"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Client returns the side of AUN towards an agent with an AID, the assignee of the gateway's tasks.
//
// The events of a stream are of two kinds. Those without a name are whole responses: to the turn itself, and to a
// task.get. The others have the method of a notification for a name, and its params for data. The params of an event
// that settles the task may have the whole task for a member "task".
func Client(to string) translate.Client { return &client{to: to} }

type client struct{ to string }

// Name implements translate.Client.
func (c *client) Name() string { return Name }

// Header implements translate.Client.
func (c *client) Header() []translate.Field { return nil }

// NamesTasks implements translate.Namer.
func (*client) NamesTasks() {}

// AppendTurn implements translate.Client. A task that has ended takes no input, so that another one continues it.
func (c *client) AppendTurn(dst []byte, t *agent.Turn, _ bool) []byte {
	if t.From == task.AwaitingInput {
		dst = c.begin(dst, SendInput, t.Ref.Task)
		return c.appendInput(dst, t)
	}
	dst = jsonrpc.BeginRequest(dst, task.AppendString(nil, t.Ref.Task), Create)
	dst = task.AppendString(append(dst, `{"to":`...), c.to)
	dst = append(dst, `,"visibility":"private"`...)
	if t.From == task.AwaitingCompletion {
		dst = task.AppendString(append(dst, `,"metadata":{"previous_task_id":`...), t.Ref.Task)
		dst = append(dst, '}')
	}
	return c.appendInput(dst, t)
}

// begin appends a request about a task up to the members after its id.
func (c *client) begin(dst []byte, method, taskID string) []byte {
	dst = jsonrpc.BeginRequest(dst, task.AppendString(nil, taskID), method)
	return task.AppendString(append(dst, `{"task_id":`...), taskID)
}

// appendInput appends the input of a turn, and ends the request. The id of the message stands beside the input, where
// some gateways look for it, and in it, where all of them keep it: it distinguishes a turn that is sent again.
func (c *client) appendInput(dst []byte, t *agent.Turn) []byte {
	id := messageID(t)
	dst = task.AppendString(append(dst, `,"message_id":`...), id)
	dst = AppendContent(append(dst, `,"input":`...), t.Message.DataItems)
	dst = task.AppendString(append(dst[:len(dst)-1], `,"message_id":`...), id)
	return jsonrpc.End(append(dst, '}', '}'))
}

// messageID returns the id of the message of a turn. One that is made is the same when the turn is sent again, and
// another one in the next turn.
func messageID(t *agent.Turn) string {
	if id := t.Message.ID; id != "" && len(id) <= wire.MaxID && !strings.ContainsFunc(id, unicode.IsControl) {
		return id
	}
	sum := crc32.ChecksumIEEE([]byte(t.Revision))
	sum = crc32.Update(sum, crc32.IEEETable, AppendContent(nil, t.Message.DataItems))
	return wire.Clean(t.Ref.Task, wire.MaxWord) + "-" + strconv.FormatUint(uint64(sum), 16)
}

// AppendGet implements translate.Getter.
func (c *client) AppendGet(dst []byte, ref agent.Ref) []byte {
	return jsonrpc.End(append(c.begin(dst, Get, ref.Task), '}'))
}

// AppendCancel implements translate.Canceler.
func (c *client) AppendCancel(dst []byte, ref agent.Ref) []byte {
	return jsonrpc.End(append(c.begin(dst, Cancel, ref.Task), '}'))
}

// AppendResubscribe implements translate.Resubscriber.
func (c *client) AppendResubscribe(dst []byte, ref agent.Ref) []byte {
	dst = jsonrpc.BeginRequest(dst, task.AppendString(nil, ref.Task), Subscribe)
	return jsonrpc.End(AppendSubscription(dst, ref.Task))
}

// AppendSubscription appends the params of a request for the events of a task, or for no more of them.
func AppendSubscription(dst []byte, taskID string) []byte {
	dst = task.AppendString(append(dst, `{"task_ids":[`...), taskID)
	return append(wire.AppendStrings(append(dst, ']'), `,"events":`, Events()), '}')
}

// AppendList implements translate.Locator.
func (c *client) AppendList(dst []byte, cursor string) []byte {
	dst = append(jsonrpc.BeginRequest(dst, jsonrpc.ID("1"), List), `{"limit":100`...)
	return jsonrpc.End(append(wire.AppendOptional(dst, `,"cursor":`, cursor), '}'))
}

// clockSkew is how much earlier than a message a task may seem to have been created that it has begun.
const clockSkew = time.Minute

// Listed implements translate.Locator.
func (c *client) Listed(body []byte, t *agent.Turn) (tasks []agent.Ref, next string, err error) {
	v, err := result(body)
	if err != nil {
		return nil, "", err
	}
	wire.Member(v, "tasks").ForEach(func(_, one gjson.Result) bool {
		id, to := wire.Member(one, "task_id").Str, wire.Member(one, "assignee").Str
		created, err := time.Parse(time.RFC3339Nano, wire.Member(one, "created_at").Str)
		before := err == nil && !t.Message.SentAt.IsZero() && created.Before(t.Message.SentAt.Add(-clockSkew))
		if id != "" && len(id) <= wire.MaxID && (to == "" || to == c.to) && !before {
			tasks = append(tasks, agent.Ref{Task: strings.Clone(id)})
		}
		return len(tasks) < wire.MaxItems
	})
	if cursor := wire.Member(v, "next_cursor").Str; len(cursor) <= wire.MaxURL {
		next = strings.Clone(cursor)
	}
	return tasks, next, nil
}

// Carries implements translate.Locator. A task that holds the id of a message is that of the message. Of others the
// input counts.
func (c *client) Carries(body []byte, t *agent.Turn) (bool, error) {
	v, err := result(body)
	if err != nil {
		return false, err
	}
	input := wire.Member(v, "input")
	for _, holder := range []gjson.Result{input, v} {
		if id := wire.Member(holder, "message_id"); id.Str != "" {
			return id.Str == messageID(t), nil
		}
	}
	said, ok := ReadContent(input)
	sent, readable := ReadContent(gjson.ParseBytes(AppendContent(nil, t.Message.DataItems)))
	return ok && readable && bytes.Equal(AppendContent(nil, said), AppendContent(nil, sent)), nil
}

// Reply implements translate.Client.
func (c *client) Reply(body []byte, known []task.Product) (agent.Report, error) {
	v, err := result(body)
	if err != nil {
		return agent.Report{}, err
	}
	if wire.Member(v, "messages").IsArray() && wire.Absent(wire.Member(v, "status")) {
		return pulled(v, known)
	}
	return whole(v)
}

// Push implements translate.Client: the params of a notification with the whole task.
func (c *client) Push(body []byte, _ []task.Product) (agent.Report, error) {
	v, err := wire.Value(body, "notification")
	if err != nil {
		return agent.Report{}, err
	}
	return whole(v)
}

// result returns the result of a response, or the error that the agent reports.
func result(body []byte) (gjson.Result, error) {
	res, err := wire.Response(body)
	if err == nil && res.Failure != nil {
		err = wire.Failed(failures, res.Failure.Code, res.Failure.Message)
	}
	return res.Result, err
}

// failures are the errors of an agent or its gateway by their codes. Those about who the caller is are about the
// gateway, and not about the Leader.
var failures = []wire.Failure{
	{Code: -32700, Kind: task.Internal, Detail: "the agent does not accept the gateway's request"},
	{Code: -32600, Kind: task.Internal, Detail: "the agent does not accept the gateway's request"},
	{Code: -32601, Kind: task.MethodNotFound, Detail: "the agent does not have this method"},
	{Code: -32602, Kind: task.InvalidParams, Detail: "the agent does not accept the parameters"},
	{Code: -32603, Kind: task.Internal, Detail: "the agent failed"},
	{Code: codes.AuthFailed, Kind: task.InvalidAgentResponse, Detail: "the agent does not accept who the gateway is"},
	{Code: codes.PermissionDenied, Kind: task.InvalidAgentResponse, Detail: "the agent does not let the gateway do this"},
	{Code: codes.TokenExpired, Kind: task.InvalidAgentResponse, Detail: "the gateway's token has expired"},
	{Code: codes.AgentOffline, Kind: task.AgentUnavailable, Detail: "the agent is offline"},
	{Code: codes.AgentTimeout, Kind: task.AgentTimeout, Detail: "the agent did not answer in time"},
	{Code: codes.TaskNotFound, Kind: task.TaskNotFound, Detail: "the agent does not know this task"},
	{Code: codes.TaskStateInvalid, Kind: task.UnsupportedOperation, Detail: "the state of the task does not allow this"},
	{Code: codes.TaskCanceled, Kind: task.TaskNotCancelable, Detail: "the task is canceled"},
	{Code: codes.TaskTooLarge, Kind: task.LimitExceeded, Detail: "the task is too large for a frame"},
	{Code: codes.TaskAccessDenied, Kind: task.InvalidAgentResponse,
		Detail: "the agent does not let the gateway use this task"},
	{Code: codes.TaskRejected, Kind: task.TaskNotCancelable, Detail: "the task was rejected"},
	{Code: codes.TaskFailed, Kind: task.TaskNotCancelable, Detail: "the task has failed"},
	{Code: codes.LimitExceeded, Kind: task.LimitExceeded, Detail: "a limit of the agent is reached"},
}

// NewStream implements translate.Client.
func (c *client) NewStream([]task.Product) translate.Stream { return &clientStream{} }

// clientStream reads the events of one stream.
type clientStream struct {
	thread string // of a conversation
	seq    int64  // of its last message
}

// Event implements translate.Stream. A notification that is not of task.*, or says nothing of a state or an artifact,
// means nothing.
func (s *clientStream) Event(event string, data []byte) (agent.Report, error) {
	if event == "" {
		v, err := result(data)
		if err != nil {
			return agent.Report{}, err
		}
		rep, err := whole(v)
		if rep.EndsTurn() && !rep.RevisionDated && !rep.State.Terminal() {
			rep.State = task.Working // the answer to an input may show the state before it; the task follows
		}
		return rep, err
	}
	switch {
	case event == MessagesBegun:
		rep, err := begun(data)
		if err == nil {
			s.thread = rep.Ref.Task
		}
		return rep, err
	case event == MessageReceived:
		v, err := wire.Value(data, "message")
		if err != nil {
			return agent.Report{}, err
		}
		s.seq = max(s.seq, wire.Member(v, "seq").Int())
		return reportMessage(v, s.thread)
	case event == MessagesOver:
		return settleMessages(agent.Report{State: task.AwaitingCompletion}, s.thread, s.seq), nil
	case !strings.HasPrefix(event, EventPrefix):
		return agent.Report{}, nil
	}
	v, err := wire.Value(data, "notification")
	if err != nil {
		return agent.Report{}, err
	}
	m := membersOf(v)
	switch {
	case m.task.IsObject():
		return m.settled()
	case m.artifact.IsObject():
		return m.chunk()
	case wire.Absent(m.status):
		return agent.Report{}, nil
	}
	return m.report()
}

// members are the members of a task, and of the events of one.
type members struct {
	id, status, updatedAt, message, reason, artifacts, children gjson.Result
	artifact, appends, last, task/* of an event that settles it */ gjson.Result
}

func membersOf(v gjson.Result) (m members) {
	wire.Members(v, func(name string, v gjson.Result) {
		switch name {
		case "task_id":
			m.id = v
		case "status":
			m.status = v
		case "updated_at":
			m.updatedAt = v
		case "message":
			m.message = v
		case "reason":
			m.reason = v
		case "artifacts":
			m.artifacts = v
		case "children":
			m.children = v
		case "artifact":
			m.artifact = v
		case "append":
			m.appends = v
		case "last_chunk":
			m.last = v
		case "task":
			m.task = v
		}
	})
	return m
}

// whole reads a task, or what an answer shows of one.
func whole(v gjson.Result) (agent.Report, error) {
	if !v.IsObject() {
		return agent.Report{}, wire.Refuse("the agent's answer is no object")
	}
	m := membersOf(v)
	rep, err := m.report()
	if err == nil && m.id.Str != "" && len(m.id.Str) <= wire.MaxID {
		rep.Ref = &agent.Ref{Task: m.id.String()}
	}
	return rep, err
}

// settled reads an event with the whole task. What it says beside the task is of the event.
func (m *members) settled() (agent.Report, error) {
	whole := membersOf(m.task)
	if !wire.Absent(m.message) {
		whole.message = m.message
	}
	if !wire.Absent(m.reason) {
		whole.reason = m.reason
	}
	return whole.report()
}

// report reads what has a status.
func (m *members) report() (rep agent.Report, err error) {
	state, ok := State(m.status.Str)
	if !ok {
		return rep, wire.Refuse("the agent's answer has the status %q, which AUN does not have",
			wire.Clean(m.status.Str, wire.MaxWord))
	}
	rep.State, rep.NativeState = state, m.status.String()
	switch {
	case !wire.Absent(m.message):
		if rep.Items, ok = ReadContent(m.message); !ok {
			return agent.Report{}, wire.Refuse("the agent's answer has a message that cannot be read")
		}
	case m.reason.Str != "":
		rep.Items = []task.DataItem{task.Text(wire.Clean(m.reason.Str, maxReason))}
	}
	if rep.Full = m.artifacts.IsArray(); rep.Full {
		if rep.Products, err = readArtifacts(m.artifacts, m.children); err != nil {
			return agent.Report{}, err
		}
	}
	rep.Revision, rep.RevisionDated = m.revision(&rep), m.updatedAt.Str != ""
	return rep, nil
}

// revision returns the revision of a task: its state, since when, and a checksum. That of a settled task does not
// depend on its artifacts, which its events do not have.
func (m *members) revision(rep *agent.Report) string {
	sum := crc32.ChecksumIEEE([]byte(m.updatedAt.Str))
	if !rep.State.Settled() {
		sum = crc32.Update(sum, crc32.IEEETable, []byte(m.artifacts.Raw))
		sum = crc32.Update(sum, crc32.IEEETable, []byte(m.message.Raw))
	}
	return rep.NativeState + " " + wire.Clean(m.updatedAt.Str, wire.MaxWord) + " " + strconv.FormatUint(uint64(sum), 16)
}

// readArtifacts reads the artifacts of a task, and shows its children with each of them.
func readArtifacts(v, children gjson.Result) (products []task.Product, err error) {
	v.ForEach(func(_, one gjson.Result) bool {
		p, ok := ReadArtifact(one)
		if !ok || len(products) == wire.MaxItems {
			err = wire.Refuse("the agent's answer has an artifact that cannot be read, or too many")
			return false
		}
		if children.IsArray() && len(children.Raw) > len("[]") {
			var x wire.Extensions
			x.Add("children", children)
			p.Extensions = x.JSON(family, "")
		}
		products = append(products, p)
		return true
	})
	return products, err
}

// family is the name under which extensions of AUN stand.
const family wire.Family = "aun"

// chunk reads an artifact, or a piece of one.
func (m *members) chunk() (agent.Report, error) {
	p, ok := ReadArtifact(m.artifact)
	if !ok {
		return agent.Report{}, wire.Refuse("the agent's event has an artifact that cannot be read")
	}
	return agent.Report{Chunks: []task.Chunk{{Product: p, Append: m.appends.Bool(), Last: m.last.Bool()}}}, nil
}

// Interface guards.
var (
	_ translate.Client       = (*client)(nil)
	_ translate.Getter       = (*client)(nil)
	_ translate.Canceler     = (*client)(nil)
	_ translate.Resubscriber = (*client)(nil)
	_ translate.Namer        = (*client)(nil)
	_ translate.Locator      = (*client)(nil)
)
