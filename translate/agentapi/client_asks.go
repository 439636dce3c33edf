// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// An agent asks by a message that needs an answer: it asks to approve the call of a tool (mcp_approval_request), or it
// calls a function of its caller (function_call). Its response is complete then, and the task awaits input. The status
// holds each request as a data item, and a continue finds the question of its answer in it. So nothing else has to be
// kept.

// maxAsks is the most requests of an agent open at once.
const maxAsks = 64

// ask is an open request of an agent.
type ask struct {
	kind     string // of the message: typeApprovalRequest or typeFunctionCall
	id, name string // of the request, and of the tool or function
	item     task.DataItem
}

// readAsk reads a request out of its data item.
func readAsk(kind string, it task.DataItem) ask {
	a := ask{kind: kind, item: it}
	idName := "id"
	if kind == typeFunctionCall {
		idName = "call_id"
	}
	wire.Members(gjson.ParseBytes(it.Data), func(key string, v gjson.Result) {
		switch key {
		case idName:
			a.id = v.Str
		case "name":
			a.name = v.Str
		}
	})
	return a
}

// asked keeps the requests in a complete message, and drops the requests answered by it.
func (r *reader) asked(kind string, items []task.DataItem) error {
	for _, it := range items {
		if it.Kind != task.DataKind {
			continue
		}
		switch kind {
		case typeApprovalRequest, typeFunctionCall:
			it.Metadata = typed(kind)
			a := readAsk(kind, it)
			if slices.ContainsFunc(r.open, func(b ask) bool { return b.kind == kind && b.id == a.id }) {
				continue
			}
			if r.open = append(r.open, a); len(r.open) > maxAsks {
				return wire.Refuse("the agent asks for more than %d approvals and functions at once", maxAsks)
			}
		case typeFunctionCallOutput:
			r.answered(typeFunctionCall, it, "call_id")
		case typeApprovalResponse:
			r.answered(typeApprovalRequest, it, "approval_request_id")
		}
	}
	return nil
}

// answered drops the request answered by a data item.
func (r *reader) answered(kind string, it task.DataItem, idName string) {
	id := jsonrpc.Member(gjson.ParseBytes(it.Data), idName).Str
	r.open = slices.DeleteFunc(r.open, func(a ask) bool { return a.kind == kind && a.id == id })
}

// question returns the open requests as the items of a status: a sentence for people, and the data, for each.
func (r *reader) question() []task.DataItem {
	items := make([]task.DataItem, 0, 2*len(r.open))
	for _, a := range r.open {
		name := wire.Clean(a.name, wire.MaxWord)
		text := "The agent calls the function " + name + ". Answer with its output."
		if a.kind == typeApprovalRequest {
			text = "The agent asks for approval to call " + name + `. Answer yes or no, or with {"approve": true}.`
		}
		items = append(items, task.Text(text), a.item)
	}
	return items
}

// answers reports whether an item belongs to a message in answer to an agent's request.
func answers(it task.DataItem) bool {
	kind := headOf(&it).kind
	return kind == typeApprovalResponse || kind == typeFunctionCallOutput
}

// appendAnswers appends the messages in answer to the agent's requests, with commas between them, and returns the other
// items of the turn. A text other than a yes or a no is no approval: it is an ordinary message.
func appendAnswers(dst []byte, t *agent.Turn, items []task.DataItem) (_ []byte, rest []task.DataItem) {
	if t.From != task.AwaitingInput || len(t.Asked) == 0 {
		return dst, items
	}
	used := make([]bool, len(items))
	some := false
	begin := func(role, kind string) {
		if some {
			dst = append(dst, ',')
		}
		some = true
		dst = append(append(dst, `{"role":"`...), role...)
		dst = append(append(dst, `","type":"`...), kind...)
		dst = append(dst, `","content":[{"type":"data","data":{`...)
	}
	for i := range t.Asked {
		switch it := &t.Asked[i]; {
		case it.Kind != task.DataKind:
		case typeOf(it) == typeApprovalRequest:
			a := readAsk(typeApprovalRequest, *it)
			if d, ok := decide(a.id, items, used); ok {
				begin("user", typeApprovalResponse)
				dst = d.append(dst, a.id)
				dst = append(dst, `}}]}`...)
			}
		case typeOf(it) == typeFunctionCall:
			a := readAsk(typeFunctionCall, *it)
			if n := outputOf(a.id, items, used); n >= 0 {
				used[n] = true
				begin("tool", typeFunctionCallOutput)
				dst = task.AppendString(append(dst, `"call_id":`...), a.id)
				dst = wire.AppendOptional(dst, `,"name":`, a.name)
				dst = task.AppendString(append(dst, `,"output":`...), output(&items[n]))
				dst = append(dst, `}}]}`...)
			}
		}
	}
	for i := range items {
		if !used[i] {
			rest = append(rest, items[i])
		}
	}
	return dst, rest
}

// decision is a Leader's answer to a request for approval.
type decision struct {
	approve bool
	reason  string
}

func (d decision) append(dst []byte, id string) []byte {
	dst = task.AppendString(append(dst, `"approval_request_id":`...), id)
	dst = append(dst, `,"approve":`...)
	if d.approve {
		dst = append(dst, "true"...)
	} else {
		dst = append(dst, "false"...)
	}
	return wire.AppendOptional(dst, `,"reason":`, d.reason)
}

// decide returns the decision about a request: that of a data item naming the request or none, or else that of a text.
// A text decides about all requests. It marks the item as used.
func decide(id string, items []task.DataItem, used []bool) (d decision, ok bool) {
	for i := range items {
		if items[i].Kind != task.DataKind || used[i] {
			continue
		}
		v := gjson.ParseBytes(items[i].Data)
		approve, about := jsonrpc.Member(v, "approve"), jsonrpc.Member(v, "approval_request_id")
		if approve.IsBool() && (about.Str == id || wire.Absent(about)) {
			used[i] = true
			return decision{approve.Bool(), jsonrpc.Member(v, "reason").Str}, true
		}
	}
	for i := range items {
		if items[i].Kind != task.TextItem {
			continue
		}
		switch strings.ToLower(strings.Trim(strings.TrimSpace(items[i].Text), ".!")) {
		case "yes":
			used[i] = true
			return decision{approve: true}, true
		case "no":
			used[i] = true
			return decision{}, true
		}
	}
	return decision{}, false
}

// outputOf returns the index of the item with the output of a call: data naming the call, or else the first data, or
// else the first text. It is -1 if there is none.
func outputOf(id string, items []task.DataItem, used []bool) int {
	data, text := -1, -1
	for i := range items {
		switch {
		case used[i]:
		case items[i].Kind == task.TextItem && text < 0:
			text = i
		case items[i].Kind == task.DataKind:
			about := jsonrpc.Member(gjson.ParseBytes(items[i].Data), "call_id")
			if about.Str == id && about.Exists() {
				return i
			}
			if wire.Absent(about) && data < 0 {
				data = i
			}
		}
	}
	if data >= 0 {
		return data
	}
	return text
}

// output returns an item as the output of a function, a string. For data it is the member output, or else all of it, as
// JSON.
func output(it *task.DataItem) string {
	if it.Kind != task.DataKind {
		return it.Text
	}
	switch v := jsonrpc.Member(gjson.ParseBytes(it.Data), "output"); {
	case v.Type == gjson.String:
		return v.Str
	case v.Exists():
		return v.Raw
	}
	return string(it.Data)
}
