// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// AppendRegister implements translate.Registrar: agents of v0.1 keep a webhook by a request of its own, and some
// take none along with a turn.
func (legacy) AppendRegister(dst []byte, ref agent.Ref, w *task.Webhook) []byte {
	dst = rpcBegin(dst, legacyPushSet, ref.Task)
	dst = append(dst, `,"pushNotificationConfig":`...)
	dst = appendLegacyConfig(dst, w)
	return append(dst, '}', '}')
}

var _ translate.Registrar = legacy{}
