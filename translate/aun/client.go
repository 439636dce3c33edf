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

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Client returns the side of AUN towards an agent with an AID, the assignee of the gateway's tasks.
//
// The events of a stream (client_stream.go) are of two kinds. Those without a name are whole responses: to the turn
// itself, and to a task.get. The others have the method of a notification for a name, and its params for data. The
// params of an event settling the task may have the whole task for a member "task".
func Client(to string) translate.Client { return &client{to: to} }

type client struct {
	to    string
	query translate.Query
}

// Name implements translate.Client.
func (c *client) Name() string { return Name }

// For implements translate.Client. The calls on a connection of AUN have their ids from the connection.
func (c *client) For(q translate.Query) translate.Client {
	q.ID = ""
	return &client{c.to, q}
}

// Header implements translate.Client.
func (c *client) Header() []translate.Field { return nil }

// NamesTasks implements translate.Namer.
func (*client) NamesTasks() {}

// AppendTurn implements translate.Client. An ended task takes no input, so another one continues it.
func (c *client) AppendTurn(dst []byte, t *agent.Turn, _ bool) []byte {
	if t.From == task.AwaitingInput {
		dst = c.begin(dst, SendInput, t.Ref.Task)
		return c.appendInput(appendMetadata(dst, &t.Message, ""), t)
	}
	dst = jsonrpc.BeginRequest(dst, task.AppendString(nil, t.Ref.Task), Create)
	dst = task.AppendString(append(dst, `{"to":`...), c.to)
	dst = append(dst, `,"visibility":"private"`...)
	previous := ""
	if t.From == task.AwaitingCompletion {
		previous = t.Ref.Task
	}
	return c.appendInput(appendMetadata(dst, &t.Message, previous), t)
}

// appendMetadata appends the metadata of a turn: the parameters of its command, and the id of the task to continue by
// another one, unless it is empty.
func appendMetadata(dst []byte, m *task.Message, previous string) []byte {
	metadata := wire.WithPassed(nil, m.Params)
	if metadata == nil && previous == "" {
		return dst
	}
	dst = append(dst, `,"metadata":`...)
	if previous == "" {
		return append(dst, metadata...)
	}
	dst = task.AppendString(append(dst, `{"previous_task_id":`...), previous)
	if metadata != nil {
		return append(append(dst, ','), metadata[1:]...)
	}
	return append(dst, '}')
}

// begin appends a request about a task up to the members after its id.
func (c *client) begin(dst []byte, method, taskID string) []byte {
	dst = jsonrpc.BeginRequest(dst, task.AppendString(nil, taskID), method)
	return task.AppendString(append(dst, `{"task_id":`...), taskID)
}

// appendInput appends the input of a turn, and ends the request. The id of the message stands beside the input, as some
// gateways look for it there, and in it, as all of them keep it there: it distinguishes a turn sent again.
func (c *client) appendInput(dst []byte, t *agent.Turn) []byte {
	id := messageID(t)
	dst = task.AppendString(append(dst, `,"message_id":`...), id)
	dst = AppendContent(append(dst, `,"input":`...), wire.Items(&t.Message))
	dst = task.AppendString(append(dst[:len(dst)-1], `,"message_id":`...), id)
	return jsonrpc.End(append(dst, '}', '}'))
}

// messageID returns the id of the message of a turn. A made one is the same when the turn is sent again, and another
// one in the next turn.
func messageID(t *agent.Turn) string {
	if id := t.Message.ID; id != "" && len(id) <= wire.MaxID && !strings.ContainsFunc(id, unicode.IsControl) {
		return id
	}
	sum := crc32.ChecksumIEEE([]byte(t.Revision))
	sum = crc32.Update(sum, crc32.IEEETable, AppendContent(nil, wire.Items(&t.Message)))
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

// clockSkew is the most by which a task may seem older than the message that began it.
const clockSkew = time.Minute

// Listed implements translate.Locator.
func (c *client) Listed(body []byte, t *agent.Turn) (tasks []agent.Ref, next string, err error) {
	v, err := result(body)
	if err != nil {
		return nil, "", err
	}
	jsonrpc.ForEach(jsonrpc.Member(v, "tasks"), func(_, one gjson.Result) bool {
		id, to := jsonrpc.Member(one, "task_id").Str, jsonrpc.Member(one, "assignee").Str
		created, err := time.Parse(time.RFC3339Nano, jsonrpc.Member(one, "created_at").Str)
		before := err == nil && !t.Message.SentAt.IsZero() && created.Before(t.Message.SentAt.Add(-clockSkew))
		if id != "" && len(id) <= wire.MaxID && (to == "" || to == c.to) && !before {
			tasks = append(tasks, agent.Ref{Task: strings.Clone(id)})
		}
		return len(tasks) < wire.MaxItems
	})
	if cursor := jsonrpc.Member(v, "next_cursor").Str; len(cursor) <= wire.MaxURL {
		next = strings.Clone(cursor)
	}
	return tasks, next, nil
}

// Carries implements translate.Locator. A task with the id of a message is the message's task. Of others the input
// counts.
func (c *client) Carries(body []byte, t *agent.Turn) (bool, error) {
	v, err := result(body)
	if err != nil {
		return false, err
	}
	input := jsonrpc.Member(v, "input")
	for _, holder := range []gjson.Result{input, v} {
		if id := jsonrpc.Member(holder, "message_id"); id.Str != "" {
			return id.Str == messageID(t), nil
		}
	}
	said, ok := ReadContent(input)
	sent, readable := ReadContent(gjson.ParseBytes(AppendContent(nil, wire.Items(&t.Message))))
	return ok && readable && bytes.Equal(AppendContent(nil, said), AppendContent(nil, sent)), nil
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
