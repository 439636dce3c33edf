// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"bytes"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// AssigneeName is the name of the dialect of agents connecting to the gateway as assignees of its tasks.
const AssigneeName = "aun-assignee"

// The notifications of an assignee about a task, beside its calls. The specification gives an assignee no method to
// ask, or to deliver before the end.
const (
	UpdatedEvent  = EventPrefix + Updated
	ArtifactEvent = EventPrefix + Artifact
	MessageSend   = "message.send"
)

// NoteEvent is a message.send while the assignee waits for input: its words belong to its question.
const NoteEvent = MessageSend + " (note)"

// assignee is the side of AUN towards an agent connecting to the gateway. Its bodies are tasks in the form for the
// agent, and not requests.
type assignee struct {
	aid   string
	owner func(leader string) string
}

// Assignee returns the dialect of an agent with an AID, connecting to the gateway. owner returns the AID of a Leader,
// the owner of its tasks.
func Assignee(aid string, owner func(leader string) string) translate.Client {
	return &assignee{aid, owner}
}

// Name implements translate.Client.
func (*assignee) Name() string { return AssigneeName }

// For implements translate.Client. An assignee is not asked anything: it reports, and names the task in each report.
func (a *assignee) For(translate.Query) translate.Client { return a }

// Header implements translate.Client.
func (*assignee) Header() []translate.Field { return nil }

// statusMember begins the body of a turn.
const statusMember = `{"status":"`

// AppendTurn implements translate.Client: the task as it is at the beginning of the turn.
func (a *assignee) AppendTurn(dst []byte, t *agent.Turn, _ bool) []byte {
	dst = append(dst, statusMember...)
	state := t.Reported
	switch {
	case state != task.None:
	case t.From == task.None:
		state = task.Accepted
	default:
		state = task.Working
	}
	dst = append(append(dst, StateName(state, false)...), '"')
	owner := a.owner(t.Message.SenderID)
	dst = a.appendNames(dst, t.Ref, owner)
	history := t.History
	if len(history) == 0 {
		history = []task.Message{t.Message}
	}
	dst = appendMetadata(dst, &t.Message, "")
	dst = AppendContent(append(dst, `,"input":`...), wire.Items(&history[0]))
	dst = append(dst, `,"messages":[`...)
	for i := range history[1:] {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = wire.AppendOptional(append(dst, `{"role":"owner"`...), `,"from":`, owner)
		dst = append(appendMembers(append(dst, ','), "", wire.Items(&history[i+1])), '}')
	}
	if dst = append(dst, ']'); t.From != task.None {
		dst = AppendContent(append(dst, `,"message":`...), wire.Items(&t.Message))
	}
	dst = append(dst, `,"artifacts":[`...)
	for i := range t.Known {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendArtifact(dst, &t.Known[i])
	}
	dst = append(dst, ']')
	if !t.Message.SentAt.IsZero() {
		dst = append(dst, `,"updated_at":"`...)
		dst = append(t.Message.SentAt.UTC().AppendFormat(dst, time.RFC3339), '"')
	}
	return append(dst, '}')
}

// appendNames appends the members with the names of a task.
func (a *assignee) appendNames(dst []byte, ref agent.Ref, owner string) []byte {
	dst = task.AppendString(append(dst, `,"task_id":`...), ref.Task)
	dst = wire.AppendOptional(dst, `,"session_id":`, ref.Session)
	dst = wire.AppendOptional(dst, `,"owner":`, owner)
	return wire.AppendOptional(dst, `,"assignee":`, a.aid)
}

// AppendCancel implements translate.Canceler.
func (a *assignee) AppendCancel(dst []byte, ref agent.Ref) []byte {
	dst = append(append(append(dst, statusMember...), StateName(task.Canceled, false)...), '"')
	return append(a.appendNames(dst, ref, ""), '}')
}

// ResendsTurns implements translate.Resender: the agent is sent its open tasks whenever it connects.
func (*assignee) ResendsTurns() {}

// SplitStatus splits the body of a turn into the status of the task and the rest.
func SplitStatus(body []byte) (status string, rest []byte) {
	value, rest, _ := bytes.Cut(body[len(statusMember):], []byte{'"'})
	return string(value), rest
}

// JoinStatus returns the task with another status.
func JoinStatus(status string, rest []byte) []byte {
	return append(append(append([]byte(statusMember), status...), '"'), rest...)
}

// Says returns the state in a call or a notification of an assignee; None for none. The error is for an invalid one, or
// an unknown method.
func Says(method string, params gjson.Result) (task.State, error) {
	rep, err := reportOf(method, params)
	return rep.State, err
}

// reportOf reads a call or a notification of an assignee.
func reportOf(method string, params gjson.Result) (rep agent.Report, err error) {
	r := wire.Reader{Prefix: "params."}
	if !r.Object(params, "") {
		return rep, r.Err
	}
	var reason string
	if v := jsonrpc.Member(params, "reason"); method == Reject || method == Fail {
		reason = wire.Owned(v, r.Text(v, "reason"))
	}
	switch method {
	case Accept:
		rep.State = task.Working
	case Reject:
		rep.State = task.Rejected
	case Fail:
		rep.State = task.Failed
	case Complete:
		rep.State = task.AwaitingCompletion
		rep.Chunks = readCompleted(&r, params)
	case UpdatedEvent:
		rep.State, rep.Items, reason = readUpdate(&r, params)
	case ArtifactEvent:
		rep.Chunks = []task.Chunk{readPiece(&r, params)}
	case MessageSend, NoteEvent:
		p, ok := ReadPayload(jsonrpc.Member(params, "payload"))
		if !ok {
			r.Fail("payload", "payload must be a text, or an object with a type and with what its type requires")
		}
		if method == NoteEvent && p.State == task.None {
			p.State = task.AwaitingInput
		}
		rep = p.Report(jsonrpc.Member(params, "message_id").Str)
	default:
		return rep, task.Errorf(task.MethodNotFound, "an assignee has no such method")
	}
	if r.Err != nil {
		return rep, r.Err
	}
	if reason != "" {
		rep.Items = []task.DataItem{task.Text(reason)}
	}
	if rep.State != task.None {
		rep.NativeState = StateName(rep.State, false)
	}
	rep.SelfResuming = rep.State == task.AwaitingInput // it may complete the task, or fail it, without an answer
	return rep, nil
}

// readCompleted reads the artifacts of a complete task.
func readCompleted(r *wire.Reader, params gjson.Result) (chunks []task.Chunk) {
	list := jsonrpc.Member(params, "artifacts")
	if wire.Absent(list) {
		return nil
	}
	r.Each(list, "artifacts", wire.MaxItems, func(v gjson.Result) {
		if p, ok := ReadArtifact(v); ok {
			chunks = append(chunks, task.Chunk{Product: p, Last: true})
		} else {
			r.Fail("", "an artifact needs an id, a type and a content")
		}
	})
	return chunks
}

// readUpdate reads an update of a task: its state, and the assignee's words about it, in a message or as a reason.
func readUpdate(r *wire.Reader, params gjson.Result) (state task.State, items []task.DataItem, reason string) {
	state, ok := State(jsonrpc.Member(params, "status").Str)
	if !ok {
		r.Fail("status", "status must be one of those of a task")
	}
	if state == task.Accepted {
		state = task.None
	}
	said := jsonrpc.Member(params, "message")
	if wire.Absent(said) {
		v := jsonrpc.Member(params, "reason")
		return state, nil, wire.Owned(v, r.Text(v, "reason"))
	}
	if items, ok = ReadContent(said); !ok {
		r.Fail("message", "message must be an object with a type and a content")
	}
	return state, items, ""
}

// readPiece reads an artifact, or a piece of one.
func readPiece(r *wire.Reader, params gjson.Result) task.Chunk {
	p, ok := ReadArtifact(jsonrpc.Member(params, "artifact"))
	if !ok {
		r.Fail("artifact", "an artifact needs an id, a type and a content")
	}
	c := task.Chunk{
		Product: p, Append: r.Flag(jsonrpc.Member(params, "append"), "append"),
		Last: !jsonrpc.Member(params, "append").Bool(),
	}
	if last := jsonrpc.Member(params, "last_chunk"); !wire.Absent(last) {
		c.Last = r.Flag(last, "last_chunk")
	}
	return c
}

// Reply implements translate.Client. Only a cancel has an answer. The gateway makes it.
func (*assignee) Reply([]byte, []task.Product) (agent.Report, error) {
	return agent.Report{State: task.Canceled}, nil
}

// NewStream implements translate.Client.
func (*assignee) NewStream(known []task.Product) translate.Stream { return &said{wire.NewBegun(known)} }

// said reads the calls and notifications of an assignee.
type said struct{ begun wire.Begun }

// Event implements translate.Stream: event is the method, data its params.
func (s *said) Event(event string, data []byte) (agent.Report, error) {
	rep, err := reportOf(event, gjson.ParseBytes(data))
	s.begun.Read(rep.Products, rep.Chunks)
	return rep, err
}

// Push implements translate.Client: the agent's words arrive by the exchange of its turn.
func (*assignee) Push([]byte, []task.Product) (agent.Report, error) { return agent.Report{}, nil }
