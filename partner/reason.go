// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// maxShownReason is the greatest length of a reason, in bytes.
const maxShownReason = 200

// Reason returns the beginning of the text of a task's last status, on one line, if the task failed, was rejected or
// was canceled; empty for others, or without a text.
func (e *Engine) Reason(ctx context.Context, o *Overview) string {
	if o.State != task.Failed && o.State != task.Rejected && o.State != task.Canceled || o.Last == 0 {
		return ""
	}
	events, _, err := e.readEvents(ctx, logname.New(o.Partner, o.Leader, o.ID), o.Last-1, o.Last, 1)
	if err != nil || len(events) == 0 {
		return ""
	}
	var status task.Status
	switch ev := &events[0]; {
	case ev.Kind == task.TaskEvent:
		var t task.Task
		err = json.Unmarshal(ev.Value, &t)
		status = t.Status
	case ev.Kind == task.StatusEvent:
		err = json.Unmarshal(ev.Value, &status)
	}
	if err != nil {
		return ""
	}
	var text []string
	for i := range status.DataItems {
		text = append(text, strings.Fields(status.DataItems[i].Text)...)
	}
	reason := strings.Join(text, " ")
	if len(reason) > maxShownReason {
		reason = strings.ToValidUTF8(reason[:maxShownReason], "") + "…"
	}
	return reason
}
