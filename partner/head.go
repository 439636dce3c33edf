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

// Head is the part of the head of a task's log about the task.
type Head struct {
	State   task.State // task.None while its start is pending
	Session string
}

// ReadHead reads the head of a task's log, and nothing else of the task. Another process may own its shard. An error is
// of kind TaskNotFound if there is no such task.
func ReadHead(ctx context.Context, logs replay.Logs, log string) (h Head, err error) {
	head, err := logs.Head(ctx, log)
	switch {
	case errors.Is(err, replay.ErrNotFound):
		_, _, id := logname.Split(log)
		return h, NotFound(id)
	case err != nil:
		return h, StoreError(err, "the store cannot be read")
	}
	var m struct {
		State   task.State `json:"state"`
		Session string     `json:"session"`
		Pending *struct {
			SessionID string `json:"sessionId"`
		} `json:"pending"`
	}
	if err := json.Unmarshal(head.Metadata, &m); err != nil {
		return h, damaged(err)
	}
	if h = (Head{m.State, m.Session}); m.Pending != nil {
		h.Session = m.Pending.SessionID
	}
	return h, nil
}
