// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"cmp"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/task"
)

// Timeouts are the defaults for the timeouts that a Leader may set when it starts a task.
type Timeouts struct {
	// The wait of a start or continue of AIP for its result; then the answer is the task as it is. See
	// docs/dialects.md#when-to-wait-less. Default: 25s.
	Response caddy.Duration `json:"response,omitempty"`

	// The wait of a blocking call of A2A, likewise. Default: 10m.
	Blocking caddy.Duration `json:"blocking,omitempty"`

	// The wait of a task for input; then it is canceled. Default: 24h.
	AwaitingInput caddy.Duration `json:"awaiting_input,omitempty"`

	// The wait of a finished task for complete; then it is completed. Default: 24h.
	AwaitingCompletion caddy.Duration `json:"awaiting_completion,omitempty"`
}

// FillDefaults sets what the configuration leaves out.
func (t *Timeouts) FillDefaults() {
	conf.OrDefault(&t.Response, caddy.Duration(25*time.Second))
	conf.OrDefault(&t.Blocking, caddy.Duration(10*time.Minute))
	conf.OrDefault(&t.AwaitingInput, caddy.Duration(24*time.Hour))
	conf.OrDefault(&t.AwaitingCompletion, caddy.Duration(24*time.Hour))
}

// Check checks the settings.
func (t *Timeouts) Check() error {
	return cmp.Or(conf.NotNegative("timeouts: response", t.Response),
		conf.NotNegative("timeouts: blocking", t.Blocking),
		conf.NotNegative("timeouts: awaiting_input", t.AwaitingInput),
		conf.NotNegative("timeouts: awaiting_completion", t.AwaitingCompletion))
}

// MaxAwaiting returns the longest time for a task to wait for its Leader: longer timeouts of a Leader
// (awaitingInputTimeout, awaitingCompletionTimeout) are shortened to it.
func (t *Timeouts) MaxAwaiting() time.Duration {
	return time.Duration(max(caddy.Duration(30*24*time.Hour), t.AwaitingInput, t.AwaitingCompletion))
}

// Terms returns the terms of a task whose Leader sets none.
func (t *Timeouts) Terms() task.Terms {
	return task.Terms{
		Response:           time.Duration(t.Response),
		AwaitingInput:      time.Duration(t.AwaitingInput),
		AwaitingCompletion: time.Duration(t.AwaitingCompletion),
	}
}
