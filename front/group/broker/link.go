// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Link is one group on a connection. One goroutine of it writes to the broker, so Publish and Delivery.Ack wait for
// nothing; another one delivers. It may be used by any number of goroutines at once.
type Link struct {
	connection *connection
	config     Config
	consumer   string // its tag, unique in the connection
	channel    *amqp.Channel
	made       bool             // the queue was made for this link
	closed     chan *amqp.Error // by the library
	canceled   chan string      // by the broker
	signal     chan struct{}    // there is something to write, or to end
	done       chan struct{}
	delivering sync.Mutex // held while a message is delivered
	frames     sync.Mutex // held while frames of one message are written, with no others between them

	mu          sync.Mutex
	err         *Error // the reason of its end, past or about to come
	stopped     bool   // nothing is delivered anymore
	leaving     bool   // nothing is written anymore
	queue       []publication
	unconfirmed int            // in queue or in flight
	inWork      map[uint64]int // deliveries not acknowledged: the lengths of their bodies
	acks        []uint64       // not written
	writing     bool
	idle        *sync.Cond // signaled when nothing is to be written or confirmed, and at the end

	// Only of the writing goroutine:
	flight []publication
	window int // the most publications in flight: one at first, so that a broker taking none can say so
}

// Message is a message to publish. It is persistent, its content type is JSON, and its user-id is the login's.
type Message struct {
	ID         string // the message-id
	Body       []byte // not changed before it is confirmed
	Headers    map[string]string
	RoutingKey string // default: the link's
}

type publication struct {
	message   Message
	done      func(error)
	confirmed *amqp.DeferredConfirmation
}

// Delivery is a message of the queue. It must be acknowledged once; if its link ends first, the broker delivers it
// again.
type Delivery struct {
	Body        []byte // empty if it was larger than Config.MaxMessage
	ID          string // the message-id
	UserID      string // the user-id, verified by the broker
	Redelivered bool

	Acknowledger Acknowledger // the link
	Tag          uint64       // the delivery's, for Acknowledger
	headers      amqp.Table
}

// Acknowledger takes the acknowledgment of a delivery, by its tag. It is a *Link, but in tests.
type Acknowledger interface{ Ack(tag uint64) }

// Header returns a header that is a string; else it is empty.
func (d *Delivery) Header(name string) string { return text(d.headers[name]) }

// Ack acknowledges the message. It does not wait. A second call does nothing.
func (d *Delivery) Ack() { d.Acknowledger.Ack(d.Tag) }

// Ack implements Acknowledger.
func (l *Link) Ack(tag uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if length, is := l.inWork[tag]; is && l.err == nil && !l.leaving {
		l.connection.socket.release(l.consumer, length)
		delete(l.inWork, tag)
		l.acks = append(l.acks, tag)
		l.wake()
	}
}

func newLink(t *topology) *Link {
	l := &Link{connection: t.connection, config: t.config, consumer: t.connection.nextConsumer(),
		channel: t.channel, made: t.made.Load(), window: 1,
		closed:   t.channel.NotifyClose(make(chan *amqp.Error, 1)),
		canceled: t.channel.NotifyCancel(make(chan string, 1)),
		signal:   make(chan struct{}, 1), done: make(chan struct{}), inWork: make(map[uint64]int)}
	l.idle = sync.NewCond(&l.mu)
	return l
}

// start begins to write.
func (l *Link) start() {
	c := l.connection
	c.mu.Lock()
	c.links[l] = struct{}{}
	c.mu.Unlock()
	c.pool.work.Go(l.run)
}

// Info is the broker's description of itself.
func (l *Link) Info() Info { return l.connection.info }

// UserID is the user-id of messages of this link. It is empty if they have none.
func (l *Link) UserID() string { return l.config.Login.userID }

// Blocked reports whether the broker takes nothing on the connection at the moment (connection.blocked).
func (l *Link) Blocked() bool { return l.connection.isBlocked() }

// Done is closed when the link has ended.
func (l *Link) Done() <-chan struct{} { return l.done }

// Err returns the reason of the link's end, an error of type *Error; nil before.
func (l *Link) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		return nil
	}
	return l.err
}

// Receive begins to consume. It is called once, and takes until ctx ends at most. deliver is called by one goroutine,
// in the order of the queue, until the link has ended; it may wait, but not after the end. Close and Leave wait for it.
// The error is of type *Error; then the link must be closed.
func (l *Link) Receive(ctx context.Context, deliver func(*Delivery)) error {
	blocked := l.connection.whenBlocked()
	if l.connection.isBlocked() {
		return l.connection.errBlocked(nil)
	}
	if err := l.connection.acquireJoin(ctx); err != nil {
		return err
	}
	// The newest consumer has priority. An older one may belong to a lost connection, though the broker has not noticed
	// the loss yet: it gets no more messages.
	priority := amqp.Table{"x-priority": time.Now().UnixMilli()}
	largest := l.config.MaxMessage
	if largest <= 0 {
		largest = DefaultMaxMessage
	}
	l.connection.socket.admit(l.consumer, largest)
	answer := make(chan error, 1)
	l.connection.pool.work.Go(func() {
		l.frames.Lock()
		deliveries, err := l.channel.Consume(l.config.Queue, l.consumer, false, false, false, false, priority)
		l.frames.Unlock()
		l.connection.releaseJoin()
		if answer <- err; err != nil {
			return
		}
		for d := range deliveries {
			l.deliver(&d, deliver)
		}
	})
	select {
	case err := <-answer:
		if err != nil {
			return l.connection.fail(err, QueueGone)
		}
		return nil
	case <-blocked:
		l.stopDelivering()
		return l.connection.errBlocked(nil)
	case <-ctx.Done(): // other links of the connection do not suffer from that
		l.stopDelivering()
		return l.connection.key.address.fail(NoAnswer, context.Cause(ctx), "the broker did not answer in time")
	}
}

// deliver delivers a message, unless the link ends.
func (l *Link) deliver(d *amqp.Delivery, to func(*Delivery)) {
	l.delivering.Lock()
	defer l.delivering.Unlock()
	l.mu.Lock()
	ended := l.err != nil || l.stopped
	if !ended {
		l.inWork[d.DeliveryTag] = len(d.Body)
	}
	l.mu.Unlock()
	if !ended {
		to(&Delivery{Body: d.Body, ID: d.MessageId, UserID: d.UserId, Redelivered: d.Redelivered,
			Acknowledger: l, Tag: d.DeliveryTag, headers: d.Headers})
	}
}

// Idle reports whether the queue is empty and all deliveries are acknowledged. A message just being delivered may be
// missed, so it is asked twice. It takes until ctx ends at most. The error is of type *Error.
func (l *Link) Idle(ctx context.Context) (bool, error) {
	l.mu.Lock()
	busy := len(l.inWork) > 0 || len(l.acks) > 0
	l.mu.Unlock()
	if busy || l.connection.isBlocked() {
		return false, nil
	}
	type answer struct {
		idle bool
		err  *Error
	}
	answers := make(chan answer, 1)
	l.connection.pool.work.Go(func() {
		messages, err := l.connection.inspect(l.config.Queue)
		answers <- answer{messages == 0, err}
	})
	select {
	case a := <-answers:
		if a.err != nil {
			return false, a.err
		}
		return a.idle, nil
	case <-ctx.Done(): // other links of the connection do not suffer from that
		return false, l.fail(NoAnswer, "the broker did not answer in time")
	}
}

// Publish sends a message after those before it. It does not wait. done is called once, when the broker has confirmed
// the message, in the order of publication, or when the link has ended before that. It must not wait, and may publish.
// An error means that done is not called: the link has ended, or MaxUnconfirmed publications are unconfirmed.
func (l *Link) Publish(m Message, done func(error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.err != nil:
		return l.err
	case l.leaving:
		return l.fail(Closed, "the link is closing")
	case l.config.Exchange == "":
		return l.fail(NoExchange, "the link only reads its queue")
	case l.unconfirmed >= MaxUnconfirmed:
		return l.fail(Refused, "too many publications are unconfirmed")
	}
	l.unconfirmed++
	l.queue = append(l.queue, publication{message: m, done: done})
	l.wake()
	return nil
}

// Close ends the link. The queue stays, and so do the messages not acknowledged. It waits until the link has ended and
// deliver has returned, but not for a blocked broker.
func (l *Link) Close() {
	l.stopDelivering()
	l.end(l.fail(Closed, "the link was closed"))
	select {
	case <-l.done:
	case <-time.After(endTimeout):
		if !l.connection.isBlocked() {
			l.connection.kill()
			<-l.done
		}
	}
	l.delivering.Lock() // deliver has returned, and is not called any more
	defer l.delivering.Unlock()
}

// Leave ends the link and deletes the queue. Before, it waits until all publications are confirmed and all
// acknowledgments are sent; the caller makes no more of them. It returns when the link has ended and deliver has
// returned. An error means that the queue may still be there.
func (l *Link) Leave(ctx context.Context) error {
	l.stopDelivering()
	err := l.flush(ctx)
	if err == nil {
		err = l.connection.ask(ctx, l.deleteQueue)
	}
	l.Close()
	if err != nil {
		return err
	}
	return nil
}

// Undo ends the link and undoes the work of its join: the queue is deleted, with its messages, if it was not there
// before. It takes until ctx ends at most. It returns when the link has ended and deliver has returned.
func (l *Link) Undo(ctx context.Context) {
	l.stopDelivering()
	l.mu.Lock()
	l.leaving = true
	l.mu.Unlock()
	if l.made {
		_ = l.connection.ask(ctx, l.deleteQueue)
	}
	l.Close()
}

// stopDelivering ends the delivery of messages. They stay in the queue.
func (l *Link) stopDelivering() {
	l.mu.Lock()
	l.stopped = true
	l.mu.Unlock()
	l.connection.socket.dismiss(l.consumer)
}

// deleteQueue deletes the queue. Nothing is published meanwhile.
func (l *Link) deleteQueue() *Error {
	l.frames.Lock()
	defer l.frames.Unlock()
	if err := l.channel.Cancel(l.consumer, false); err != nil {
		return l.connection.fail(err, QueueGone)
	}
	if _, err := l.channel.QueueDelete(l.config.Queue, false, false, false); err != nil {
		return l.connection.fail(err, QueueGone)
	}
	return nil
}

// flush waits until nothing is to be written or confirmed, and keeps it so.
func (l *Link) flush(ctx context.Context) *Error {
	stop := context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.idle.Broadcast()
	})
	defer stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.err == nil && ctx.Err() == nil {
		if l.unconfirmed == 0 && len(l.acks) == 0 && !l.writing {
			l.leaving = true
			return nil
		}
		l.idle.Wait()
	}
	if l.err != nil {
		return l.err
	}
	return l.fail(NoAnswer, "the broker did not confirm in time")
}
