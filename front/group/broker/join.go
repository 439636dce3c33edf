// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"cmp"
	"context"
	"strings"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Join makes a link: it connects and logs in, unless there is a connection to share, checks the exchange, makes or
// checks the queue, and binds it. All of it takes at most the pool's timeout. After an error nothing stays: no
// goroutine, no connection, and no queue made by this call. Errors are of type *Error.
//
// Messages wait in the queue until Link.Receive is called.
func (p *Pool) Join(ctx context.Context, c Config) (*Link, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	declared, failed := p.declare(ctx, c)
	if failed != nil {
		return nil, failed
	}
	connection, failed := p.acquire(ctx, c)
	if failed != nil {
		declared()
		return nil, failed
	}
	t := &topology{connection: connection, config: c}
	l, failed := p.try(ctx, t, connection.whenBlocked(), declared)
	if failed == errSuperseded {
		if connection, failed = p.acquire(ctx, c); failed != nil {
			declared()
			return nil, failed
		}
		again := &topology{connection: connection, config: c}
		again.made.Store(t.made.Load())
		l, failed = p.try(ctx, again, nil, declared)
	}
	if failed != nil {
		return nil, failed
	}
	return l, nil
}

// errSuperseded is the error of a try followed by another one.
var errSuperseded = new(Error)

// try makes the link of a topology. If its connection is blocked meanwhile, the try is superseded: its results are for
// the next one, and the next one has to call declared.
func (p *Pool) try(ctx context.Context, t *topology, blocked <-chan struct{}, declared func()) (*Link, *Error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		link *Link
		err  *Error
	}
	joined := make(chan result)
	p.work.Go(func() {
		link, err := t.connection.join(ctx, t)
		select {
		case joined <- result{link, err}:
		case <-ctx.Done(): // the caller no longer waits for the link
			switch {
			case link == nil:
			case t.superseded.Load():
				link.Close()
			default:
				late, cancel := context.WithTimeout(p.ctx, undoTimeout)
				defer cancel()
				link.Undo(late)
			}
		}
		if !t.superseded.Load() {
			declared()
		}
	})
	select {
	case r := <-joined:
		return r.link, r.err
	case <-blocked:
		t.superseded.Store(true)
		t.connection.giveUp(t)
		return nil, errSuperseded
	case <-ctx.Done():
		t.connection.giveUp(t)
		return nil, t.config.Address.fail(NoAnswer, context.Cause(ctx), "the broker did not answer in time")
	}
}

// giveUp is called when the caller of a join has gone. A connection with such joins only is closed: at once, or, if a
// queue may have been made, when there was time to delete it. At a slower broker the queue expires.
func (c *connection) giveUp(t *topology) {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	if t.ended {
		return
	}
	t.given = true
	if c.given++; c.given < c.users {
		return
	}
	c.withdraw()
	if c.declares.Load() {
		time.AfterFunc(lateTimeout, c.kill)
	} else {
		c.kill()
	}
}

// declare waits for earlier joins able to make or delete the queue. The join must call declared when it has made its
// link, or left nothing behind.
func (p *Pool) declare(ctx context.Context, c Config) (declared func(), _ *Error) {
	at := queueKey{c.Address, c.Queue}
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.declaring[at] != nil {
		before := p.declaring[at]
		p.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
		}
		p.mu.Lock()
		if ctx.Err() != nil {
			return nil, c.Address.fail(NoAnswer, context.Cause(ctx), "the broker did not answer an earlier join in time")
		}
	}
	if !c.Declare {
		return func() {}, nil
	}
	done := make(chan struct{})
	p.declaring[at] = done
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.declaring, at)
		close(done)
	}, nil
}

// join makes a link on the connection. If the broker is slow it continues after ctx has ended, for a while, to remove
// all it has made. It releases the connection if it makes no link.
func (c *connection) join(ctx context.Context, t *topology) (*Link, *Error) {
	l, err := c.make(ctx, t)
	t.end()
	if err != nil {
		c.release()
	}
	return l, err
}

// make is join without the release.
func (c *connection) make(ctx context.Context, t *topology) (*Link, *Error) {
	if err := c.acquireJoin(ctx); err != nil {
		return nil, err
	}
	defer c.releaseJoin()
	defer c.expect(c.pool.timeout + undoTimeout)()
	l, err := t.build(ctx)
	if err != nil {
		t.remove()
		return nil, err
	}
	return l, nil
}

// acquireJoin waits until a join may ask the broker. It must call releaseJoin then.
func (c *connection) acquireJoin(ctx context.Context) *Error {
	select {
	case c.joins <- struct{}{}:
		return nil
	case <-ctx.Done(): // those before it take too long
		return c.key.address.fail(NoAnswer, context.Cause(ctx), "the broker did not answer in time")
	}
}

func (c *connection) releaseJoin() { <-c.joins }

// topology is a link's part of the broker, while it is made.
type topology struct {
	connection *connection
	config     Config
	channel    *amqp.Channel // nil if there is none
	made       atomic.Bool   // the queue was made by this join
	superseded atomic.Bool   // another one makes the link, and owns the queue

	// Under Pool.mu:
	given bool // the caller has gone, and it is counted in connection.given
	ended bool // there is a link, or the join has failed
}

// end notes the end of the join: its connection has a link, or is about to be released.
func (t *topology) end() {
	p := t.connection.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.ended = true; t.given {
		t.connection.given--
	}
}

// build makes a link. After an error, remove undoes its work.
func (t *topology) build(ctx context.Context) (*Link, *Error) {
	c := t.config
	if err := t.open(); err != nil {
		return nil, t.connection.fail(err, Refused)
	}
	if err := t.exchange(); err != nil {
		return nil, err
	}
	if t.superseded.Load() { // a queue declared now may have been deleted meanwhile
		return nil, errSuperseded
	}
	if err := t.queue(); err != nil {
		return nil, err
	}
	if err := t.bind(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, c.Address.fail(NoAnswer, context.Cause(ctx), "the broker did not answer in time")
	}
	return t.confirming()
}

// exchange checks that the exchange is there.
func (t *topology) exchange() *Error {
	name := t.config.Exchange
	if name == "" {
		return nil
	}
	err := t.channel.ExchangeDeclarePassive(name, amqp.ExchangeFanout, true, false, false, false, nil) // of any type
	if err == nil {
		return nil
	}
	failed := t.connection.fail(err, NoExchange)
	if failed.Kind != NoExchange || !t.config.Topic {
		return failed
	}
	if err := t.open(); err != nil {
		return t.connection.fail(err, Refused)
	}
	if err := t.channel.ExchangeDeclare(name, amqp.ExchangeTopic, true, false, false, false, nil); err != nil {
		return t.connection.fail(err, Refused)
	}
	return nil
}

// bind binds the queue to the exchange.
func (t *topology) bind() *Error {
	c := &t.config
	if c.Exchange == "" {
		return nil
	}
	if err := t.channel.QueueBind(c.Queue, c.RoutingKey, c.Exchange, false, nil); err != nil {
		return t.connection.fail(err, NoExchange)
	}
	return nil
}

// open opens a channel. An earlier one was closed by the broker.
func (t *topology) open() error {
	channel, err := t.connection.amqp.Channel()
	if err == nil {
		t.channel = channel
	}
	return err
}

// queue makes the queue if it is missing. An existing one is used as it is.
func (t *topology) queue() *Error {
	name := t.config.Queue
	_, err := t.channel.QueueDeclarePassive(name, true, false, false, false, nil)
	if err == nil {
		return nil
	}
	failed := t.connection.fail(err, QueueGone)
	if failed.Kind != QueueGone || !t.config.Declare {
		return failed
	}
	if err := t.open(); err != nil {
		return t.connection.fail(err, Refused)
	}
	if t.superseded.Load() {
		return errSuperseded
	}
	t.made.Store(true)
	t.connection.declares.Store(true)
	arguments := amqp.Table{amqp.QueueTTLArg: cmp.Or(t.config.Expires, queueExpires).Milliseconds()}
	if keep := t.config.KeepMessages; keep > 0 {
		arguments[amqp.QueueMessageTTLArg] = keep.Milliseconds()
	}
	if _, err := t.channel.QueueDeclare(name, true, false, false, false, arguments); err != nil {
		return t.connection.fail(err, Refused)
	}
	return nil
}

// confirming makes the link of the topology.
func (t *topology) confirming() (*Link, *Error) {
	if err := t.channel.Confirm(false); err != nil {
		return nil, t.connection.fail(err, Refused)
	}
	prefetch := t.config.Prefetch
	if prefetch <= 0 {
		prefetch = DefaultPrefetch
	}
	if err := t.channel.Qos(prefetch, 0, false); err != nil {
		return nil, t.connection.fail(err, Refused)
	}
	l := newLink(t)
	l.start()
	return l, nil
}

// remove undoes the work of the join, the queue included.
func (t *topology) remove() {
	if t.channel == nil {
		return
	}
	if t.made.Load() && !t.superseded.Load() {
		if t.channel.IsClosed() && t.open() != nil {
			return
		}
		_, _ = t.channel.QueueDelete(t.config.Queue, false, false, false)
	}
	_ = t.channel.Close()
}

// passes reports whether a queue not found is only out of reach now: its node is down.
func passes(reason string) bool { return strings.Contains(reason, "down or inaccessible") }

// isGone reports whether a queue is gone, by asking the broker. If it cannot be asked, the next join finds out.
func (c *connection) isGone(queue string) bool {
	if c.isBlocked() {
		return false
	}
	_, err := c.inspect(queue)
	return err != nil && err.Kind == QueueGone
}

// inspect returns the number of messages in a queue.
func (c *connection) inspect(queue string) (int, *Error) {
	defer c.expect(undoTimeout)()
	channel, err := c.amqp.Channel()
	if err != nil {
		return 0, c.fail(err, Refused)
	}
	defer channel.Close()
	q, err := channel.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		return 0, c.fail(err, QueueGone)
	}
	return q.Messages, nil
}
