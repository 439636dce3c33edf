// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Schema is what the objects of callers look like, where HTTP+JSON of 0.3, out of which 1.0 grew, differs from 1.0. A
// Server has one of them.
type Schema struct {
	// Lenient says that there is no rule for media types, and none against subscribing to a task that has ended.
	Lenient  bool
	Parts    string // the member of a Message that holds its parts
	Role     string // another word for the role of callers; empty for none
	Canceled string // the state of a canceled task
	Final    bool   // an event of a status says whether it is the last one

	ReadPart          func(r *Request, v gjson.Result) task.DataItem
	ReadConfiguration func(r *Request, v gjson.Result, call *translate.Call)
	ReadWebhook       func(r *Request) *task.Webhook
	AppendParts       func(dst []byte, items []task.DataItem) []byte
	AppendWebhook     func(dst []byte, w *task.Webhook) []byte
}

// ownSchema is that of 1.0.
var ownSchema = Schema{
	Parts: "parts", Canceled: "TASK_STATE_CANCELED",
	ReadPart:          (*Request).part,
	ReadConfiguration: (*Request).configuration,
	ReadWebhook:       func(r *Request) *task.Webhook { return r.webhook(r.Param, "") },
	AppendParts:       appendParts,
	AppendWebhook:     appendConfig,
}

// NewBase returns a server over plain HTTP whose callers' objects are of another schema. Its name, its paths and the
// notifications of its webhooks are for the caller to add.
func NewBase(schema *Schema, confirm bool) Base {
	return Base{confirm: confirm, rest: true, schema: schema}
}
