// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"time"
)

// A broker short of memory or disk raises an alarm. RabbitMQ says connection.blocked on a connection when something is
// published there, and then reads nothing from that connection, acknowledgments and declarations included, until the
// alarm is over. It serves others, new ones among them, as long as nothing is published there. So a blocked connection
// takes no more links, and is not taken for dead, because its links go on when the alarm is over.

// block notes whether the broker is blocked, and has the links continue.
func (c *connection) block(is bool) {
	if is == c.isBlocked() { // only the calling goroutine changes it
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if is {
		close(c.blocked)
	} else {
		c.blocked = make(chan struct{})
	}
	for l := range c.links {
		l.wake()
	}
}

// whenBlocked is closed when the broker blocks the connection.
func (c *connection) whenBlocked() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blocked
}

// isBlocked reports whether the broker takes nothing on this connection at the moment.
func (c *connection) isBlocked() bool {
	select {
	case <-c.whenBlocked():
		return true
	default:
		return false
	}
}

// errBlocked is the error of a request not made of a blocked connection.
func (c *connection) errBlocked(cause error) *Error {
	return c.key.address.fail(NoAnswer, cause, "the broker takes nothing on this connection while it has an alarm")
}

// expect closes the connection if answered is not called within d. The time counts anew while the broker blocks it.
func (c *connection) expect(d time.Duration) (answered func()) {
	has := false
	var timer *time.Timer
	c.mu.Lock()
	defer c.mu.Unlock()
	timer = time.AfterFunc(d, func() {
		blocked := c.isBlocked()
		c.mu.Lock()
		if blocked && !has {
			timer.Reset(d)
		}
		silent := !blocked && !has
		c.mu.Unlock()
		if silent {
			c.kill()
		}
	})
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		has = true
		timer.Stop()
	}
}

// ask has f ask the broker something, until ctx ends. Then the connection is closed, unless it is blocked.
func (c *connection) ask(ctx context.Context, f func() *Error) *Error {
	if c.isBlocked() {
		return c.errBlocked(nil)
	}
	answered := make(chan *Error, 1)
	c.pool.work.Go(func() { answered <- f() })
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
	}
	if c.isBlocked() {
		return c.errBlocked(context.Cause(ctx))
	}
	c.kill()
	return <-answered
}
