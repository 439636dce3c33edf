// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"slices"

	"github.com/aip-gateway/aip-gateway/task"
)

// Acceptor stores one kind of the Extras of commands. A refused command stores none. The Extras of an accepted one are
// there when its first event is.
type Acceptor interface {
	// Accept is called when a start or a continue is accepted, before it is stored, while nothing else can happen to the
	// task. log is the name of the task's log, and at its position before the command. After it only the store can fail,
	// or another Acceptor. An error refuses the command. A command without changes, if it is not refused, is accepted,
	// too; its stored Extras are not undone. It returns the zero Accepted if there is nothing to do.
	Accept(ctx context.Context, log string, at task.Position, c *Request) (Accepted, error)
}

// Accepted has the steps to follow after an Acceptor has stored something for a command.
type Accepted struct {
	// Stored, if it is not nil, is called when a start is stored, before anything else happens to the task. It must not
	// wait.
	Stored func()
	// Undo removes the stored Extras. It is called if the command cannot be stored, or if the start is taken back because
	// the agent refuses it. Nil if there is nothing to remove.
	Undo func(context.Context) error
}

// AddAcceptor has an Acceptor store Extras of commands, whatever their shard. It is called before the first command in
// need of it. Acceptors are called in the order of their addition, and undo in the reverse order.
func (p *Process) AddAcceptor(a Acceptor) {
	for {
		had := p.acceptors.Load()
		var all []Acceptor
		if had != nil {
			all = slices.Clone(*had)
		}
		if all = append(all, a); p.acceptors.CompareAndSwap(had, &all) {
			return
		}
	}
}

// acceptance is the Acceptors' results for one command.
type acceptance []Accepted

// accept has the Acceptors store the Extras of a command. tk.mu is held.
func (tk *activeTask) accept(ctx context.Context, c *Request) (done acceptance, err error) {
	acceptors := tk.engine.process.acceptors.Load()
	if acceptors == nil {
		return nil, nil
	}
	for _, a := range *acceptors {
		one, err := a.Accept(ctx, tk.log, tk.position(), c)
		if err != nil {
			done.undo(ctx, tk)
			return nil, err
		}
		if one.Stored != nil || one.Undo != nil {
			done = append(done, one)
		}
	}
	return done, nil
}

// acceptUnchanged is accept for a command without a change. tk.mu is held.
func (tk *activeTask) acceptUnchanged(ctx context.Context, c *Request) error {
	if !c.changesTask() {
		return nil
	}
	if err := tk.watch(ctx); err != nil {
		return err
	}
	_, err := tk.accept(ctx, c)
	return err
}

// stored tells the Acceptors of the stored start.
func (done acceptance) stored() {
	for _, a := range done {
		if a.Stored != nil {
			a.Stored()
		}
	}
}

// undo removes the stored Extras, also after the caller has left.
func (done acceptance) undo(ctx context.Context, tk *activeTask) {
	for _, a := range slices.Backward(done) {
		if a.Undo == nil {
			continue
		}
		if err := a.Undo(context.WithoutCancel(ctx)); err != nil {
			tk.logger().WarnContext(ctx, "a command failed, and what it had set before could not be removed", "error", err)
		}
	}
}
