// SPDX-License-Identifier: Apache-2.0

package group

import (
	"context"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
)

// dialer makes links. It is a broker.Pool, but in tests.
type dialer interface {
	// Join connects a group. Nothing is delivered before link.Receive. Errors are *broker.Error, and leave nothing
	// behind.
	Join(ctx context.Context, c broker.Config) (link, error)
	Close()
}

// link is the place of one group at a broker. It is a *broker.Link, but in tests. Its methods may be called by any
// number of goroutines at once.
type link interface {
	// Receive begins to consume. Messages are delivered one after another, until the link has ended. It is called once;
	// until then, another link of the same queue gets all its messages.
	Receive(ctx context.Context, deliver func(*broker.Delivery)) error

	// Publish publishes a message, in the order of the calls, and does not wait. done is called once, when the broker
	// has confirmed it, or the link has ended before. After an error it is not called.
	Publish(m broker.Message, done func(error)) error

	// Idle reports whether the queue is empty and everything delivered from it is acknowledged.
	Idle(ctx context.Context) (bool, error)

	Info() broker.Info
	// Blocked reports whether the broker takes no publications now.
	Blocked() bool

	// Leave deletes the queue, when everything is confirmed and acknowledged, and ends the link.
	Leave(ctx context.Context) error
	// Undo deletes the queue if it was made by Join, and ends the link.
	Undo(ctx context.Context)
	// Close ends the link. The queue stays, with the messages not acknowledged.
	Close()

	// Done is closed when the link has ended. Err is the reason then, a *broker.Error.
	Done() <-chan struct{}
	Err() error
}

// pool makes links of a broker.Pool.
type pool struct{ *broker.Pool }

func newPool() dialer { return pool{broker.NewPool(0)} }

// Join implements dialer.
func (p pool) Join(ctx context.Context, c broker.Config) (link, error) {
	l, err := p.Pool.Join(ctx, c)
	if err != nil {
		return nil, err
	}
	return l, nil
}
