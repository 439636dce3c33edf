// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"encoding/json"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// version is the form of common things of AIP in one generation. The common part of the two is in v01.00's words
// elsewhere in this package.
type version struct {
	command         string // the type of a command
	member          string // of the params of rpc; those of stream are v01.00's
	responseTimeout string
	lastMessage     string // the parameter of get
	task            string // the type of a task
	status          string // the type of an event
	other           string // the words about an answer in the other generation
}

var (
	v1 = version{"message", "message", "responseTimeout", "lastMessageSentAt", "task", "status-update",
		": it is of AIP 2, and the call of AIP 1"}
	v2 = version{"task-command", "command", "timeout", "lastCommandSentAt", typeResult, "task-status-update",
		": it is of AIP 1, and the call of AIP 2"}
)

const typeResult = "task-result"

func (c *Client) version() *version {
	if c.V2 {
		return &v2
	}
	return &v1
}

// appendRequest appends the request of a method with a message.
func (v *version) appendRequest(dst []byte, id jsonrpc.ID, method string, m *task.Message) []byte {
	dst = jsonrpc.BeginRequest(dst, id, method)
	member := v.member
	if method == "stream" {
		member = "message"
	}
	dst = append(append(append(dst, `{"`...), member...), `":{"type":"`...)
	dst = append(append(dst, v.command...), '"')
	at := len(dst)
	dst = task.AppendMessage(dst, m)
	dst = append(dst[:at], dst[at+len(`{"type":"message"`):]...) // the other members follow the type
	return jsonrpc.End(append(dst, '}'))
}

// result is a TaskResult of AIP 2: a Message of its Partner with the content of a Task of v01.00.
type result struct {
	task.Task
	ID       string    `json:"id"` // of the message
	SenderID string    `json:"senderId"`
	TaskID   string    `json:"taskId"`
	Commands []command `json:"commandHistory"`
}

// command is a TaskCommand. Its mentions, found in groups only, may be a word or a list.
type command struct {
	task.Message
	Mentions json.RawMessage `json:"mentions"`
}

// readTask reads a task in the form of a version.
func (v *version) readTask(text string) (*task.Task, error) {
	if v.task != typeResult {
		t := new(task.Task)
		return t, json.Unmarshal([]byte(text), t)
	}
	var r result
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, err
	}
	r.Task.ID = r.TaskID
	for i := range r.Commands {
		r.Task.MessageHistory = append(r.Task.MessageHistory, r.Commands[i].Message)
	}
	return &r.Task, nil
}
