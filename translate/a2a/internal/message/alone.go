// SPDX-License-Identifier: Apache-2.0

package message

import (
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// An agent may answer a message by a Message and make no task. Then the caller gets this Message, and not the gateway's
// task for it. With confirm the caller gets the task: it is for the caller to complete it.

// Alone returns the product to show to the caller of a command as the Message of the agent; nil if the task is shown.
func Alone(t *task.Task, c *translate.Call, confirm bool) *task.Product {
	if !answers(t, c, confirm) || t.Status.State != task.Completed || len(t.Products) != 1 {
		return nil
	}
	return &t.Products[0]
}

func answers(t *task.Task, c *translate.Call, confirm bool) bool {
	return t.WithoutTask && c.Message.Command == task.Start && !confirm
}

// Stream returns the encoder of a stream with the Message of the agent, appended by frame, as its only frame; nil if
// the events of the task are shown.
func Stream(
	t *task.Task, c *translate.Call, confirm bool, frame func(dst []byte, p *task.Product) []byte,
) translate.Encoder {
	if !answers(t, c, confirm) {
		return nil
	}
	return &encoder{frame: frame}
}

type encoder struct {
	frame func(dst []byte, p *task.Product) []byte
	data  []byte // the frame, once the product is known
}

// Snapshot implements translate.Encoder.
func (e *encoder) Snapshot(dst []byte, t *task.Task) translate.Frame {
	if len(t.Products) > 0 {
		e.data = e.frame(nil, &t.Products[0])
	}
	return e.reach(dst, t.Status.State)
}

// Event implements translate.Encoder.
func (e *encoder) Event(dst []byte, ev *task.Event) translate.Frame {
	switch {
	case ev.Task != nil:
		return e.Snapshot(dst, ev.Task)
	case ev.Status != nil:
		return e.reach(dst, ev.Status.State)
	case ev.Chunk != nil:
		e.data = e.frame(nil, &ev.Chunk.Product)
	}
	return translate.Frame{}
}

// reach returns the frame if the task has ended.
func (e *encoder) reach(dst []byte, s task.State) translate.Frame {
	if s != task.Completed {
		return translate.Frame{}
	}
	return translate.Frame{Data: append(dst, e.data...), End: true}
}
