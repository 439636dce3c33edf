// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"slices"

	"github.com/aip-gateway/aip-gateway/task"
)

// isRepeated reports whether a message is a continue executed before: a caller sends it again after losing the answer,
// and it must not be executed twice. A message without an id is always a new one. tk.mu is held.
func (tk *activeTask) isRepeated(m *task.Message) bool {
	return m.Command == task.Continue && m.ID != "" &&
		slices.ContainsFunc(tk.messages(), func(had task.Message) bool { return had.ID == m.ID })
}

// begunBy returns the turn under way begun by an earlier execution of a start or continue, at an owner of the shard
// that has lost it; nil for none. tk.mu is held.
func (tk *activeTask) begunBy(m *task.Message) *run {
	if tk.run == nil {
		return nil
	}
	begins := m.Command == task.Start || m.Command == task.Continue && m.ID != ""
	if had := &tk.run.turn.Message; !begins || had.ID != m.ID || m.ID == "" && had.Command != task.Start {
		return nil
	}
	return tk.run
}

// isSame reports whether a repeated message has the content of the executed one. tk.mu is held.
func (tk *activeTask) isSame(m *task.Message) bool {
	return slices.ContainsFunc(tk.messages(), func(had task.Message) bool {
		return had.ID == m.ID && slices.EqualFunc(had.DataItems, m.DataItems, task.DataItem.Equal)
	})
}

// messages returns the executed messages, or the pending one. tk.mu is held.
func (tk *activeTask) messages() []task.Message {
	if m := tk.meta.Pending; m != nil {
		return []task.Message{*m}
	}
	return tk.commands()
}

// commands returns the executed messages of the Leader. tk.mu is held.
func (tk *activeTask) commands() []task.Message {
	all := tk.fold.Task().MessageHistory
	if !slices.ContainsFunc(all, isRemark) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), isRemark)
}

// isRemark reports whether a message has the agent's words.
func isRemark(m task.Message) bool { return m.SenderRole == task.Partner }

// seqBeforeMessage returns the number of the event before the one caused by a message. If it is no longer kept, it
// returns the number of the last event. tk.mu is held.
func (tk *activeTask) seqBeforeMessage(ctx context.Context, id string) uint64 {
	_, _, records, err := tk.stored().Load(ctx)
	if err != nil {
		return tk.logState.last
	}
	for _, r := range records {
		if _, _, cause := task.SplitEvent(r.Data); cause == nil {
			continue
		}
		if ev, err := task.DecodeEvent(r.Data); err == nil && ev.Cause.ID == id {
			return r.Seq - 1
		}
	}
	return tk.logState.last
}
