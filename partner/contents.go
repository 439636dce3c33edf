// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// Contents returns a task as an operator sees it, and the task itself as its log has it: with its products, all its
// states so far, and the Leader's messages. The task of a pending start has nothing but the message. It reads the whole
// log, and no task waits for it. An error is of kind TaskNotFound if there is no such task.
func (e *Engine) Contents(ctx context.Context, partner, leader, id string) (o Overview, t task.Task, err error) {
	log := logname.New(partner, leader, id)
	head, snapshot, records, err := e.store.Load(ctx, log)
	if errors.Is(err, replay.ErrNotFound) {
		return o, t, noSuchTask(id)
	}
	if err != nil {
		return o, t, listError(ctx, err)
	}
	fold, err := foldAll(head, snapshot, records, 0)
	if err == nil {
		o, err = overviewOf(log, &head)
	}
	if err != nil {
		return o, t, damaged(err)
	}
	var m metadata
	if err := json.Unmarshal(head.Metadata, &m); err != nil {
		return o, t, damaged(err)
	}
	if m.Pending != nil {
		return o, task.Task{GroupID: m.Pending.GroupID, MessageHistory: []task.Message{*m.Pending}}, nil
	}
	return o, *fold.Task(), nil
}
