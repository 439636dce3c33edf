// SPDX-License-Identifier: Apache-2.0

package group

import (
	"context"

	"github.com/aip-gateway/aip-gateway/group/broker"
)

// tasks is what a membership does with the tasks of its group: it executes the commands that the group sends, and
// publishes what happens to the tasks. The supervisor of the membership calls its methods, one at a time, but for
// receive, follow and traffic, which may be called at any time.
type tasks interface {
	// receive takes a delivery of the group's queue. Deliveries come one after another. It acknowledges the delivery
	// when what it asks for is in a log, or is not for this agent, and passes a command for members to
	// membership.manage. It does not wait for an agent.
	receive(d *broker.Delivery)

	// follow has a task published that is about to be started, as gateway.Groups has it.
	follow(ctx context.Context, log, dialect string) (begin func(), undo func(context.Context) error, err error)

	// connect has everything published on a link from now on, beginning with what no broker has confirmed yet, in
	// order. With nil, nothing is published. The link before may have ended, or ends soon. At most maxUnconfirmed
	// publications are unconfirmed, so that there is always room for the member's status.
	connect(l link)

	// mute keeps everything from being published until it is called with false.
	mute(muted bool)

	// cancel cancels the tasks that run. It returns when their logs say so, or with an error when ctx ends. From then on
	// the membership starts no task.
	cancel(ctx context.Context) error

	// flush returns when everything that may be published is confirmed: at once for a muted member. It returns an error
	// when the link or ctx ends before.
	flush(ctx context.Context) error

	// drop forgets what was to be published. The membership is over.
	drop(ctx context.Context) error

	// close ends all work of the process for the tasks, and waits for it. What is stored stays.
	close()

	traffic() Traffic
}

// roomForStatus is how many publications of a link are kept for the member's status, and maxUnconfirmed how many are
// for tasks.
const (
	roomForStatus  = 16
	maxUnconfirmed = broker.MaxUnconfirmed - roomForStatus
)

// Traffic counts what a membership has received and published since the process began.
type Traffic struct {
	Received  uint64 // messages of the group, the agent's own included
	Executed  uint64 // commands
	Ignored   uint64 // messages that are not for this agent
	Poison    uint64 // messages that could not be read
	Published uint64
	Confirmed uint64 // by the broker

	Unconfirmed int // publications that the broker has still to confirm
	Lag         int // tasks with something that is still to be published
	Tasks       int // tasks of the group that have not ended, or not been published to their end
}
