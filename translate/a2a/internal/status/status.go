// SPDX-License-Identifier: Apache-2.0

// Package status reads the status of a task as agents report it, and writes it for callers before 1.0.
package status

import (
	"encoding/json"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/extension"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Revision returns the stamp of a task. One that rests is stamped by its status alone, since that is all that
// the last event of a stream tells. dated reports whether the agent says when it changed its state;
// whole seconds do not tell two turns within one second apart.
func Revision(rep *agent.Report, status, artifacts gjson.Result) (stamp string, dated bool) {
	sum := crc32.ChecksumIEEE([]byte(status.Raw))
	if !rep.State.Settled() {
		sum = crc32.Update(sum, crc32.IEEETable, []byte(artifacts.Raw))
	}
	return rep.NativeState + " " + strconv.FormatUint(uint64(sum), 16), strings.Contains(status.Get("timestamp").Str, ".")
}

// Form is how a version writes a TaskStatus.
type Form struct {
	Version string
	// state returns the state of AIP that a word means. The empty word stands for a state that is missing.
	State        func(word string) (s task.State, ok bool)
	Parts        func(list gjson.Result) ([]task.DataItem, error)
	AuthRequired string // the state of a task that waits until the agent has been given permission by another way
}

// read reads a TaskStatus into rep.
func (f *Form) Read(rep *agent.Report, status gjson.Result) error {
	if !status.IsObject() {
		return wire.Refuse("the agent's answer has a status that is no object")
	}
	var state, parts gjson.Result
	var others, said wire.Extensions
	wire.Members(status, func(key string, v gjson.Result) {
		switch key {
		case "state":
			state = v
		case "message":
			wire.Members(v, func(key string, v gjson.Result) {
				switch key {
				case "parts":
					parts = v
				case "kind", "type", "id", "messageId", "role", "taskId", "contextId": // of no use here
				case "artifacts", "append", "lastChunk", "history": // of no message
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
	s, ok := f.State(state.Str)
	switch {
	case !ok && state.Str == "":
		return wire.Refuse("the agent's answer has a status without a state")
	case !ok:
		return wire.Refuse("the agent's answer has the state %q, which A2A %s does not have", wire.Clean(state.Str, wire.MaxWord), f.Version)
	}
	items, err := f.Parts(parts)
	if err != nil {
		return err
	}
	rep.State, rep.NativeState, rep.Items = s, state.Str, items
	rep.Extensions = extension.OfStatus(&others, &said)
	if state.Str == f.AuthRequired {
		rep.SelfResuming = true
		rep.Items = append(rep.Items, task.DataItem{Kind: task.DataKind, Data: json.RawMessage(`{"a2aState":"auth-required"}`)})
	}
	return nil
}

// AuthRequired is the state of a task that waits until somebody has shown the agent who they are, which comes to
// it by another way than A2A.
const AuthRequired = "auth-required"

// State returns the AIP state that a state of a version before 1.0 means. v0.1 has fewer of them, but its
// agents may have grown. "unknown" means none: the agent does not say.
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

// Word returns the word of the versions before 1.0 for a state. A task that awaits its completion asks for
// input where its caller is to confirm, and is completed where not.
func Word(s task.State, confirm bool) string {
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

// AppendExtensions appends what was not understood of a Task or an event, and in its metadata what the dialect's word
// for a state does not say.
func AppendExtensions(dst []byte, extra json.RawMessage, state task.State, word string) []byte {
	if state != task.AwaitingCompletion && (state != task.Rejected || word == string(task.Rejected)) {
		state = task.None
	}
	return extension.AppendResult(dst, extra, state)
}

// Said returns the status that says what a task says with its state. A task that was completed without a word says
// what it said when it had finished: that stage is hidden from most callers.
func Said(t *task.Task) *task.Status {
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

// HasMessage reports whether a status has a message.
func HasMessage(said *task.Status) bool {
	return len(said.DataItems) > 0 || extension.HasMessage(said.Extensions)
}

// AppendTime appends the member that says since when, in UTC, which more callers can read.
func AppendTime(dst []byte, st *task.Status) []byte {
	if st.ChangedAt.IsZero() {
		return dst
	}
	return task.AppendTime(append(dst, `,"timestamp":`...), st.ChangedAt.UTC())
}

// AllBut returns all states but one, or nil for all of them where they are all different words.
func AllBut(one task.State, confirm bool) []task.State {
	if confirm {
		return nil
	}
	return slices.DeleteFunc(task.States(), func(s task.State) bool { return s == one })
}
