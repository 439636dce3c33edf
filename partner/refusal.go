// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/codes"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// Refusal is an error. Refused reports whether the agent has refused a start and has done nothing. An Agent may return
// it.
type Refusal interface {
	error
	Refused() bool
}

// isRefusal reports whether the agent has refused a start.
func isRefusal(err error) bool {
	r, ok := errors.AsType[Refusal](err)
	return ok && r.Refused()
}

// leave ends the wait of the caller of a start for the turn. It returns the refusal of the agent, if it has taken the
// start back, or would have but for Policy.Begun.
func (r *run) leave() error {
	r.tk.mu.Lock()
	defer r.tk.mu.Unlock()
	r.awaited = false
	return r.refusal
}

// refuse takes back a start refused by the agent, and reports whether it did: if the caller waits for the refusal
// (dialect.Policy.Refusable), and no caller has seen the task. Then nothing is left of it. The error is the reason if
// the drop could not be stored.
func (r *run) refuse(refusal error) (taken bool, _ error) {
	tk := r.tk
	err := tk.persist(r.ctx, r, func() error {
		if r.ctx.Err() != nil || tk.run != r {
			return nil
		}
		if err := tk.load(r.ctx); err != nil {
			return fmt.Errorf("%w: %w", errStore, err)
		}
		if tk.exists { // if not, a failed drop has removed it
			if r.awaited && r.shown {
				r.refusal = refusal // the task fails, but its caller is answered as if there were none
			}
			if !r.awaited || tk.meta.Pending == nil {
				return nil
			}
			if err := tk.drop(); err != nil {
				return fmt.Errorf("%w: %w", errStore, err)
			}
		}
		tk.engine.open.done(tk.log)
		if r.awaited {
			r.accepted.undo(r.ctx, tk)
		}
		taken, r.refusal = true, refusal
		return nil
	})
	if taken {
		kind := task.KindOf(refusal)
		r.span.SetStatus(codes.Error, kind.String())
		tk.logger().InfoContext(r.ctx, "the agent refused a message", "kind", kind.String(), "reason", withoutKind{refusal})
	}
	return taken, err
}

// drop removes a task with a pending start. tk.mu is held.
func (tk *activeTask) drop() error {
	if err := tk.append(&replay.Append{Log: tk.log, Drop: true}); err != nil {
		return err
	}
	tk.publish(task.Rejected, tk.engine.wall())
	tk.engine.states.add(task.None, -1)
	tk.invalidate()
	return nil
}
