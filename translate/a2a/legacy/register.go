// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/rpc"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/webhook"
)

// AppendRegister implements translate.Registrar: an agent of v0.1 takes a webhook by a request of its own, and some
// ignore the one in a turn.
func (c client) AppendRegister(dst []byte, ref agent.Ref, w *task.Webhook) []byte {
	dst = rpc.Begin(dst, &c.query, pushSet, ref.Task)
	dst = append(dst, `,"pushNotificationConfig":`...)
	dst = webhook.Append(dst, w)
	return append(dst, '}', '}')
}
