// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// Resend says what happens to a start or continue whose connection breaks, if the agent says that it does not have the
// message. The agent may have read the message, and begin with it later. An agent of a2a/legacy may know its task only
// at the end, or never: by default, the message is sent again only to one that was seen to know a task while it works
// on it, and once. Otherwise the task fails, and says so.
type Resend struct {
	// after: the time of questions about it before; with store jetstream at least twice its lease. 0: once. Default: 10s.
	After *caddy.Duration `json:"after,omitempty"`

	// never: the task fails after this time. Default: false.
	Never bool `json:"never,omitempty"`

	// always: it is sent again like any other, to an agent without double work for one id. Default: false.
	Always bool `json:"always,omitempty"`
}

// defaultResend is the default of after.
const defaultResend = caddy.Duration(10 * time.Second)

func (r *Resend) fillDefaults() { conf.OrDefault(&r.After, new(defaultResend)) }

func (r *Resend) check() error {
	switch {
	case *r.After < 0:
		return fmt.Errorf("%w; 0 means that the agent is asked once", conf.NotNegative("agent: resend after", *r.After))
	case r.Never && r.Always:
		return errors.New("agent: resend is never and always; write one of them")
	}
	return nil
}

// mode returns when a message is sent again.
func (r *Resend) mode() upstream.Resend {
	switch {
	case r.Never:
		return upstream.ResendNever
	case r.Always:
		return upstream.ResendAlways
	}
	return upstream.ResendProven
}

// parse reads the option: "after" and a duration, or "never" or "always", alone or before that.
func (r *Resend) parse(p *conf.Parser) func() {
	return func() {
		args := p.RemainingArgs()
		if len(args) > 0 && (args[0] == "never" || args[0] == "always") {
			r.Never, r.Always = r.Never || args[0] == "never", r.Always || args[0] == "always"
			if args = args[1:]; len(args) == 0 {
				return
			}
		}
		if len(args) != 2 || args[0] != "after" {
			p.Fail("resend needs after and a duration, such as after 10s, or never or always, alone or before that")
			return
		}
		after, err := caddy.ParseDuration(args[1])
		if err != nil {
			p.Fail("resend after needs a duration, such as 10s")
			return
		}
		r.After = new(caddy.Duration(after))
	}
}
