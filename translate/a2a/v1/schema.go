// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Schema is the difference of the objects of callers between 1.0 and its origin, HTTP+JSON of 0.3.
type Schema struct {
	// Lenient allows every media type, and subscribing to an ended task.
	Lenient  bool
	Parts    string // the member of a Message with its parts
	Role     string // another name of the role of callers; empty for none
	Canceled string // the state of a canceled task
	Final    bool   // an event of a status says whether it is the last one

	ReadPart          func(r *Request, v gjson.Result) task.DataItem
	ReadConfiguration func(r *Request, v gjson.Result, call *translate.Call)
	ReadWebhook       func(r *Request) *task.Webhook
	AppendParts       func(dst []byte, items []task.DataItem) []byte
	AppendWebhook     func(dst []byte, w *task.Webhook) []byte
}

// ownSchema is the schema of 1.0.
var ownSchema = Schema{
	Parts: "parts", Canceled: "TASK_STATE_CANCELED",
	ReadPart:          (*Request).part,
	ReadConfiguration: (*Request).configuration,
	ReadWebhook:       func(r *Request) *task.Webhook { return r.webhook(r.Param, "") },
	AppendParts:       appendParts,
	AppendWebhook:     appendConfig,
}

// NewBase returns a server over HTTP+JSON for callers with a schema. Its name, its paths and its notifications are for
// the embedding package.
func NewBase(schema *Schema, confirm bool) Base {
	return Base{confirm: confirm, rest: true, schema: schema}
}
