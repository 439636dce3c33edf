// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"hash/crc32"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun/codes"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Reply implements translate.Client.
func (c *client) Reply(body []byte, known []task.Product) (agent.Report, error) {
	v, err := result(body)
	if err != nil {
		return agent.Report{}, err
	}
	if jsonrpc.Member(v, "messages").IsArray() && wire.Absent(jsonrpc.Member(v, "status")) {
		return pulled(v, known)
	}
	return c.whole(v)
}

// Push implements translate.Client: the params of a notification with the whole task.
func (c *client) Push(body []byte, _ []task.Product) (agent.Report, error) {
	v, err := wire.Value(body, "notification")
	if err != nil {
		return agent.Report{}, err
	}
	return c.whole(v)
}

// result returns the result of a response, or the error reported by the agent.
func result(body []byte) (gjson.Result, error) {
	res, err := wire.Response(body, new(translate.Query))
	if err == nil && res.Failure != nil {
		err = wire.Failed(failures, res.Failure)
	}
	return res.Result, err
}

// failures are the errors of an agent or its gateway by their codes. Those about the caller's identity are about the
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

// whole reads a task, or a part of one in an answer.
func (c *client) whole(v gjson.Result) (agent.Report, error) {
	if !v.IsObject() {
		return agent.Report{}, wire.Refuse("the agent's answer is no object")
	}
	m := membersOf(v)
	if err := wire.About(&c.query, m.id.Str); err != nil {
		return agent.Report{}, err
	}
	rep, err := m.report()
	if err == nil && m.id.Str != "" && len(m.id.Str) <= wire.MaxID {
		rep.Ref = &agent.Ref{Task: m.id.String()}
	}
	return rep, err
}

// settled reads an event with the whole task. Its message and reason beside the task are the event's.
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

// report reads an object with a status.
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

// revision returns the revision of a task: its state, since when, and a checksum. The revision of a settled task does
// not depend on its artifacts, as its events do not have them.
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
	jsonrpc.ForEach(v, func(_, one gjson.Result) bool {
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

// family is the name of the extensions of AUN.
const family wire.Family = "aun"

// chunk reads an artifact, or a piece of one. One not added to another is whole.
func (m *members) chunk() (agent.Report, error) {
	p, ok := ReadArtifact(m.artifact)
	if !ok {
		return agent.Report{}, wire.Refuse("the agent's event has an artifact that cannot be read")
	}
	last := m.last.Bool() || wire.Absent(m.last) && !m.appends.Bool()
	return agent.Report{Chunks: []task.Chunk{{Product: p, Append: m.appends.Bool(), Last: last}}}, nil
}
