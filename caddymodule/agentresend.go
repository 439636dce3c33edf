// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"time"

	"github.com/caddyserver/caddy/v2"
)

// Resend says what happens to a start or continue whose connection breaks, if the agent says that it does not have the
// message. The agent may have read the message, and begin with it later.
type Resend struct {
	// How long the agent is asked for the message, again and again, before the message is sent again. 0 means once.
	// Default: 10s.
	After *caddy.Duration `json:"after,omitempty"`

	// Such a message is never sent again: after this time, the task fails, and says that it is unknown whether the agent
	// acts on the message. Default: false.
	Never bool `json:"never,omitempty"`
}

// defaultResend is the default of after.
const defaultResend = caddy.Duration(10 * time.Second)

func (r *Resend) fillDefaults() { orDefault(&r.After, new(defaultResend)) }

// parse reads the option: "after" and a duration, "never", or "never" and then "after" and a duration.
func (r *Resend) parse(p *parser) func() {
	return func() {
		args := p.RemainingArgs()
		if len(args) > 0 && args[0] == "never" {
			r.Never = true
			if args = args[1:]; len(args) == 0 {
				return
			}
		}
		if len(args) != 2 || args[0] != "after" {
			p.fail("resend needs after and a duration, such as after 10s, or never, or both, such as never after 10s")
			return
		}
		after, err := caddy.ParseDuration(args[1])
		if err != nil {
			p.fail("resend after needs a duration, such as 10s")
			return
		}
		r.After = new(caddy.Duration(after))
	}
}
