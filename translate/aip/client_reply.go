// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"hash/crc32"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Reply implements translate.Client: an RpcResponse (§6.1.2). It copies body once; the report's texts are views of
// that copy.
func (c *client) Reply(body []byte, known []task.Product) (agent.Report, error) {
	result, err := answer(body, &c.query)
	if err != nil {
		return agent.Report{}, err
	}
	return whole(result, known, &c.query)
}

// Push implements translate.Client: the body of a notification (§6.3.5), a Task without an envelope.
func (c *client) Push(body []byte, known []task.Product) (agent.Report, error) {
	v, err := wire.Value(body, "notification")
	if err != nil {
		return agent.Report{}, err
	}
	return whole(v, known, &c.query)
}

// NewStream implements translate.Client.
func (c *client) NewStream(known []task.Product) translate.Stream {
	return &clientStream{query: c.query, begun: wire.NewBegun(known)}
}

// clientStream reads StreamResponses (§6.2.2). Their eventSeq is ignored: a connection keeps its order, and the
// content of a stream starting again from the beginning is never read.
type clientStream struct {
	query translate.Query // of the stream; none once an event has proven to belong to it, and with it all others
	last  wire.LastPiece
	begun wire.Begun
}

// Event implements translate.Stream. An event of an unknown kind means nothing: it is a later version's.
func (s *clientStream) Event(event string, data []byte) (agent.Report, error) {
	if len(data) == 0 {
		return agent.Report{}, nil
	}
	result, err := answer(data, &s.query)
	if err != nil {
		if event != "" && event != "message" && task.KindOf(err) == task.InvalidAgentResponse {
			err = nil // a ping, or whatever else the agent's server sends for itself
		}
		return agent.Report{}, err
	}
	v := jsonrpc.Member(result, "eventData")
	if !v.IsObject() {
		return agent.Report{}, wire.Refuse("the agent's event has no eventData that is an object")
	}
	m := contentOf(v)
	if err := wire.About(&s.query, m.about()); err != nil {
		return agent.Report{}, err
	}
	s.query = translate.Query{}
	switch {
	case !wire.Absent(m.product):
		rep, err := m.chunk()
		s.begun.Read(nil, rep.Chunks)
		return rep, err
	case !wire.Absent(m.status):
		rep, err := m.task()
		s.begun.Read(rep.Products, nil)
		return rep, err
	case !wire.Absent(m.items):
		// A Partner's results stand in its Task, so this is a remark on the way: the Partner is working.
		items, err := readItems(m.items)
		if err != nil || len(items) == 0 {
			return agent.Report{}, err
		}
		return agent.Report{
			State: task.Working, Items: items, Extensions: m.rest.extensions(statusNames),
			NativeState: "message", Revision: "message " + checksum(m.items.Raw),
		}, nil
	}
	return agent.Report{}, nil
}

// content holds the members of a Task, a Message, a TaskStatusUpdateEvent or a ProductChunkEvent, and of the
// replacements for them in later versions.
type content struct {
	kind, id, taskID, status, products, product, append, last, items gjson.Result

	rest rest
}

// about returns the id of the task; empty if it is missing.
func (m *content) about() string {
	if m.taskID.Str == "" && m.kind.Str == "task" {
		return m.id.Str
	}
	return m.taskID.Str
}

func contentOf(v gjson.Result) (m content) {
	jsonrpc.ForEach(v, func(key, v gjson.Result) bool {
		switch key.Str {
		case "type":
			m.kind = v
		case "id":
			m.id = v
		case "taskId":
			m.taskID = v
		case "status":
			m.status = v
		case "products":
			m.products = v
		case "product":
			m.product = v
		case "append":
			m.append = v
		case "lastChunk":
			m.last = v
		case "dataItems":
			m.items = v
		case "sentAt", "senderRole", "senderId", "mentions", "command", "commandParams", "groupId", "sessionId",
			"messageHistory", "commandHistory", "statusHistory": // the gateway keeps its own
		default:
			m.rest.add(key.Str, v)
		}
		return true
	})
	return m
}

// whole reads a Task, or a Partner's Message in its place, in answer to a query.
func whole(v gjson.Result, known []task.Product, q *translate.Query) (agent.Report, error) {
	if !v.IsObject() {
		return agent.Report{}, wire.Refuse("the agent's answer is no object")
	}
	m := contentOf(v)
	if err := wire.About(q, m.about()); err != nil {
		return agent.Report{}, err
	}
	switch {
	case !wire.Absent(m.status):
		return m.task()
	case m.kind.Str == "message" || wire.Absent(m.kind) && !wire.Absent(m.items):
		return m.message(known)
	}
	return agent.Report{}, wire.Refuse("the agent's answer is neither a Task nor a Message")
}

// message reads a Message as the whole answer to a turn. There is no task to wait for, so its content is the result: a
// product beside the known ones.
func (m *content) message(known []task.Product) (agent.Report, error) {
	items, err := readItems(m.items)
	if err != nil {
		return agent.Report{}, err
	}
	rep := agent.Report{
		State: task.AwaitingCompletion, NativeState: "message", Verbatim: true, Full: true, Products: slices.Clone(known),
	}
	rep.Revision = "message " + checksum(m.id.Raw, m.items.Raw)
	if len(items) == 0 {
		return rep, nil
	}
	p := task.Product{ID: "message", DataItems: items, Extensions: m.rest.extensions(productNames)}
	if id := m.id.Str; id != "" && len(id) <= wire.MaxID {
		p.ID = id
	}
	rep.Products = wire.PutProduct(rep.Products, p)
	return rep, nil
}

// task reads an object with a status: a Task, or a TaskStatusUpdateEvent. The latter has no products.
func (m *content) task() (agent.Report, error) {
	var rep agent.Report
	var state, changedAt, items gjson.Result
	var others rest
	if !m.status.IsObject() {
		return rep, wire.Refuse("the agent's answer has a status that is no object")
	}
	jsonrpc.ForEach(m.status, func(key, v gjson.Result) bool {
		switch key.Str {
		case "state":
			state = v
		case "stateChangedAt":
			changedAt = v
		case "dataItems":
			items = v
		default:
			others.add(key.Str, v)
		}
		return true
	})
	if state.Type != gjson.String {
		return rep, wire.Refuse("the agent's answer has a status without a state")
	}
	s, ok := stateOf(state.Str)
	if !ok {
		return rep, wire.Refuse("the agent's answer has the state %q, which AIP does not have",
			wire.Clean(state.Str, wire.MaxWord))
	}
	var err error
	if rep.Items, err = readItems(items); err != nil {
		return agent.Report{}, err
	}
	rep.State, rep.NativeState, rep.Closed = s, state.Str, state.Str == string(task.Completed)
	rep.Verbatim = true
	rep.Extensions, rep.TaskExtensions = others.extensions(statusNames), m.rest.extensions(taskNames)
	if rep.Full = m.kind.Str == "task" || m.kind.Str == "task-result" || !wire.Absent(m.products); rep.Full {
		if rep.Products, err = readProducts(m.products); err != nil {
			return agent.Report{}, err
		}
	}
	rep.Revision, rep.RevisionDated = revision(&rep, changedAt.Str, m.products.Raw), changedAt.Str != ""
	return rep, nil
}

// stateOf returns the state in a Partner's report. AIP's states are the canon's, but for one: a Partner with a
// completed task has completed it by itself, as it does after a timeout. Its report says so by being closed.
func stateOf(native string) (s task.State, ok bool) {
	for _, known := range task.States() {
		if native == string(known) {
			if known == task.Completed {
				known = task.AwaitingCompletion
			}
			return known, true
		}
	}
	return task.None, false
}

// revision returns the revision of a task: its state, since when, and a checksum of its data items. The revision of a
// settled task does not depend on its products, since the last event of a stream does not have them. The checksum is of
// the items as read, because a Partner may write the same status with nulls in an answer and without them in an event.
func revision(rep *agent.Report, changedAt, products string) string {
	sum := crc32.ChecksumIEEE([]byte(changedAt))
	sum = crc32.Update(sum, crc32.IEEETable, task.AppendStatus(nil, &task.Status{DataItems: rep.Items}))
	if !rep.State.Settled() {
		sum = crc32.Update(sum, crc32.IEEETable, []byte(products))
	}
	return rep.NativeState + " " + wire.Clean(changedAt, wire.MaxWord) + " " + strconv.FormatUint(uint64(sum), 16)
}

func checksum(parts ...string) string {
	var sum uint32
	for _, s := range parts {
		sum = crc32.Update(sum, crc32.IEEETable, []byte(s))
	}
	return strconv.FormatUint(uint64(sum), 16)
}

// chunk reads a ProductChunkEvent (§6.2.4).
func (m *content) chunk() (agent.Report, error) {
	p, err := readProduct(m.product)
	if err != nil {
		return agent.Report{}, err
	}
	for _, v := range [...]gjson.Result{m.append, m.last} {
		if !wire.Absent(v) && !v.IsBool() {
			return agent.Report{}, wire.Refuse("the agent's product chunk has an append or lastChunk that is no boolean")
		}
	}
	return agent.Report{Chunks: []task.Chunk{{Product: p, Append: m.append.Bool(), Last: m.last.Bool(),
		Extensions: m.rest.extensions(eventNames)}}}, nil
}
