// SPDX-License-Identifier: Apache-2.0

// Package status reads the status of a task as agents report it, and writes it for callers before 1.0.
package status

import (
	"bytes"
	"encoding/json"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/extension"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Revision returns a stamp of a task. It changes when the agent changes the task. For a settled task it depends on the
// status alone, since the last event of a stream has nothing else. dated reports whether the agent dates its states;
// whole seconds do not distinguish two turns within one second.
func Revision(rep *agent.Report, status, artifacts gjson.Result) (stamp string, dated bool) {
	sum := crc32.ChecksumIEEE([]byte(status.Raw))
	if !rep.State.Settled() {
		sum = crc32.Update(sum, crc32.IEEETable, []byte(artifacts.Raw))
	}
	var buf [64]byte
	stamp = string(strconv.AppendUint(append(append(buf[:0], rep.NativeState...), ' '), uint64(sum), 16))
	return stamp, strings.Contains(status.Get("timestamp").Str, ".")
}

// Form is the TaskStatus of a version's agents.
type Form struct {
	Version string
	// State returns the state of AIP. name is empty if the state is missing.
	State func(name string) (s task.State, ok bool)
	// Means returns the name meant by another word of an agent; empty for none.
	Means        func(word string) string
	Parts        func(list gjson.Result) ([]task.DataItem, error)
	AuthRequired string // the state of a task waiting for authorization; the agent gets it outside of A2A
}

// Read reads a TaskStatus into rep.
func (f *Form) Read(rep *agent.Report, status gjson.Result) error {
	if !status.IsObject() {
		return wire.Refuse("the agent's answer has a status that is no object")
	}
	var state, parts, content gjson.Result
	var others, said wire.Extensions
	wire.Members(status, func(key string, v gjson.Result) {
		switch key {
		case "state":
			state = wire.Enum(v)
		case "message":
			if v.Type == gjson.String { // some agents have only its text
				content = v
			}
			wire.Members(v, func(key string, v gjson.Result) {
				switch key {
				case "parts":
					parts = v
				case "content":
					if content = v; v.Type != gjson.String && !v.IsArray() && !v.IsObject() {
						extension.AddResult(&said, key, v)
					}
				case "kind", "type", "id", "messageId", "role", "taskId", "contextId": // not used
				case "artifacts", "append", "lastChunk", "history": // not of a message
				default:
					extension.AddResult(&said, key, v)
				}
			})
		case "timestamp":
		default:
			others.Add(key, v)
		}
	})
	if state.Type != gjson.String && state.Type != gjson.Null {
		return wire.Refuse("the agent's answer has a state that is no string")
	}
	name := state.Str
	s, ok := f.State(name)
	if !ok && name != "" {
		name = f.Means(name)
		s, ok = f.State(name)
	}
	switch {
	case !ok && state.Str == "":
		return wire.Refuse("the agent's answer has a status without a state")
	case !ok:
		return wire.Refuse("the agent's answer has the state %q, which A2A %s does not have",
			wire.Clean(state.Str, wire.MaxWord), f.Version)
	}
	items, err := f.readMessage(parts, content)
	if err != nil {
		return err
	}
	rep.State, rep.NativeState, rep.Items = s, state.Str, items
	rep.Extensions = extension.OfStatus(&others, &said)
	if name == f.AuthRequired {
		rep.SelfResuming = true
		rep.Items = append(rep.Items, task.DataItem{Kind: task.DataKind, Data: authMark})
	}
	return nil
}

// readMessage reads the parts of the message of a status. Some agents have a text in their place, or call them content.
func (f *Form) readMessage(parts, content gjson.Result) ([]task.DataItem, error) {
	switch {
	case parts.Exists() || !content.Exists():
		return f.Parts(parts)
	case content.Type != gjson.String:
		return f.Parts(content)
	case content.Str == "":
		return nil, nil
	}
	return []task.DataItem{task.Text(content.Str)}, nil
}

// authMark is the data of the item for authorization in a status awaiting input.
var authMark = json.RawMessage(`{"a2aState":"auth-required"}`)

func isAuthMark(it task.DataItem) bool {
	return it.Kind == task.DataKind && (bytes.Equal(it.Data, authMark) ||
		gjson.GetBytes(it.Data, "a2aState").Str == AuthRequired)
}

// AwaitsAuth reports whether a task waits for authorization.
func AwaitsAuth(st *task.Status) bool {
	return st.State == task.AwaitingInput && slices.ContainsFunc(st.DataItems, isAuthMark)
}

// WithoutMark returns a status without that item, for a dialect with a state for AwaitsAuth.
func WithoutMark(said *task.Status) *task.Status {
	if !AwaitsAuth(said) {
		return said
	}
	plain := *said
	plain.DataItems = slices.DeleteFunc(slices.Clone(said.DataItems), isAuthMark)
	return &plain
}

// AuthRequired is the state, before 1.0, of a task waiting for authorization. The agent gets it outside of A2A.
const AuthRequired = "auth-required"

// State returns the state of AIP for a state before 1.0. v0.1 has fewer states, but its agents may send later ones.
// "unknown" is task.None: the agent does not say.
func State(word string) (s task.State, ok bool) {
	switch word {
	case "submitted":
		return task.Accepted, true
	case "working":
		return task.Working, true
	case "input-required", AuthRequired:
		return task.AwaitingInput, true
	case "completed":
		return task.AwaitingCompletion, true
	case "canceled", "cancelled":
		return task.Canceled, true
	case "failed":
		return task.Failed, true
	case "rejected":
		return task.Rejected, true
	case "unknown":
		return task.None, true
	}
	return task.None, false
}

// Plain returns a word for a state in small letters, with hyphens, and without the prefix of states in 1.0. The word
// may be in any case, with hyphens, underscores or spaces, or in camel case.
func Plain(word string) string {
	var b strings.Builder
	small := false // the letter before
	for _, r := range word {
		switch {
		case r == '_' || r == ' ':
			r = '-'
		case small && unicode.IsUpper(r):
			b.WriteByte('-')
		}
		small = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.TrimPrefix(b.String(), "task-state-")
}

// Name returns the name of a state before 1.0. A task awaiting completion is input-required with confirm, and completed
// without.
func Name(s task.State, confirm bool) string {
	switch s {
	case task.Accepted:
		return "submitted"
	case task.Working, task.Failed, task.Canceled, task.Rejected, task.Completed:
		return string(s) // the same in both
	case task.AwaitingInput:
		return "input-required"
	case task.AwaitingCompletion:
		if confirm {
			return "input-required"
		}
		return "completed"
	}
	return "unknown"
}

// AppendExtensions appends the extensions of a Task or an event, with the state of AIP in the metadata if its name does
// not say it.
func AppendExtensions(dst []byte, extra json.RawMessage, state task.State, word string) []byte {
	if state != task.AwaitingCompletion && (state != task.Rejected || word == string(task.Rejected)) {
		state = task.None
	}
	return extension.AppendResult(dst, extra, state)
}

// Shown returns the status with the message to show with a task. A task completed without a message shows that of
// awaiting completion, as most callers do not see this state.
func Shown(t *task.Task) *task.Status {
	if t.Status.State != task.Completed || len(t.Status.DataItems) > 0 {
		return &t.Status
	}
	for i := len(t.StatusHistory) - 1; i >= 0; i-- {
		if h := &t.StatusHistory[i]; h.State == task.AwaitingCompletion {
			return h
		}
	}
	return &t.Status
}

// Of returns a status with a message of the Partner, since in A2A such a message belongs to a state.
func Of(m *task.Message, state task.State) *task.Status {
	return &task.Status{State: state, ChangedAt: m.SentAt, DataItems: m.DataItems, Extensions: m.Extensions}
}

// HasMessage reports whether a status has a message.
func HasMessage(said *task.Status) bool {
	return len(said.DataItems) > 0 || extension.HasMessage(said.Extensions)
}

// AppendTime appends the time of a status, in UTC, as more callers can read it.
func AppendTime(dst []byte, st *task.Status) []byte {
	if st.ChangedAt.IsZero() {
		return dst
	}
	return task.AppendTime(append(dst, `,"timestamp":`...), st.ChangedAt.UTC())
}

// AllExcept returns all states but one: the states for notifying a webhook. With confirm it returns nil for all of
// them, since each has a name of its own.
func AllExcept(one task.State, confirm bool) []task.State {
	if confirm {
		return nil
	}
	return slices.DeleteFunc(task.States(), func(s task.State) bool { return s == one })
}
