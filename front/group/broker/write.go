// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"cmp"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// run writes to the broker, and takes its confirms, until the link has ended.
func (l *Link) run() {
	defer l.finish()
	for {
		var oldest <-chan struct{}
		if len(l.flight) > 0 {
			oldest = l.flight[0].confirmed.Done()
		}
		select {
		case <-oldest:
			l.confirm()
		case <-l.signal:
		case err := <-l.closed:
			l.end(l.lost(err))
		case _, is := <-l.canceled:
			if is {
				l.end(l.canceledBy())
			} else { // the channel is closed
				l.end(l.lost(<-l.closed))
			}
		}
		if !l.write() {
			return
		}
	}
}

// confirm calls done for the confirmed publications at the head.
func (l *Link) confirm() {
	n := 0
	for ; n < len(l.flight); n++ {
		p := &l.flight[n]
		if !isDone(p.confirmed) {
			break
		}
		if !p.confirmed.Acked() {
			l.end(l.refusal())
			break
		}
		l.window = min(2*l.window, MaxUnconfirmed)
	}
	confirmed := slices.Clone(l.flight[:n])
	l.flight = slices.Delete(l.flight, 0, n)
	l.mu.Lock()
	l.unconfirmed -= n
	l.mu.Unlock()
	for _, p := range confirmed {
		p.done(nil)
	}
}

func isDone(c *amqp.DeferredConfirmation) bool {
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

// refusal is the error of an unconfirmed publication: the channel is closed, or else the broker has refused it. A
// message published again after others would be out of order, so the link ends.
func (l *Link) refusal() *Error {
	select {
	case err := <-l.closed:
		return l.lost(err)
	default:
		return l.fail(Refused, "the broker did not take a message")
	}
}

// lost is the error of a closed channel; err is nil if the gateway closed it.
func (l *Link) lost(err *amqp.Error) *Error {
	if err == nil {
		return l.fail(Closed, "the connection was closed")
	}
	return l.connection.fail(err, NoExchange)
}

// canceledBy is the broker's reason to cancel the consumer: the queue was deleted, or its node is down.
func (l *Link) canceledBy() *Error {
	if l.connection.isGone(l.config.Queue) {
		return l.fail(QueueGone, "the queue was deleted")
	}
	return l.fail(Closed, "the broker ended the delivery")
}

// write writes acknowledgments and publications. It returns false when the link is to end and everything possible is
// written.
func (l *Link) write() bool {
	for {
		acks, publications, ended := l.take()
		if ended != nil && ended.Kind != Closed {
			return false
		}
		for _, a := range acks {
			if err := l.channel.Ack(a.tag, a.multiple); err != nil {
				l.end(l.connection.fail(err, Refused))
			}
		}
		for _, p := range publications {
			l.publish(p)
		}
		if ended != nil {
			return false
		}
		if len(acks) == 0 && len(publications) == 0 {
			return true
		}
	}
}

type ack struct {
	tag      uint64
	multiple bool
}

// take takes all to be written now.
func (l *Link) take() ([]ack, []publication, *Error) {
	blocked := l.connection.isBlocked()
	l.mu.Lock()
	defer l.mu.Unlock()
	acks := l.takeAcks()
	if l.err != nil {
		return acks, nil, l.err
	}
	var publications []publication
	if n := min(l.window-len(l.flight), len(l.queue)); n > 0 && !blocked {
		publications = slices.Clone(l.queue[:n])
		l.queue = slices.Delete(l.queue, 0, n)
	}
	l.writing = len(acks) > 0 || len(publications) > 0
	if !l.writing {
		l.idle.Broadcast()
	}
	return acks, publications, nil
}

// takeAcks takes the acknowledgments. Those below the first message in work become one.
func (l *Link) takeAcks() []ack {
	if len(l.acks) == 0 {
		return nil
	}
	slices.Sort(l.acks)
	first := ^uint64(0)
	for tag := range l.inWork {
		first = min(first, tag)
	}
	var acks []ack
	if n, _ := slices.BinarySearch(l.acks, first); n > 0 {
		acks = append(acks, ack{tag: l.acks[n-1], multiple: n > 1})
		l.acks = l.acks[n:]
	}
	for _, tag := range l.acks {
		acks = append(acks, ack{tag: tag})
	}
	l.acks = nil
	return acks
}

// publish writes a publication. One not written is in flight all the same: the link has ended then.
func (l *Link) publish(p publication) {
	var headers amqp.Table
	if len(p.message.Headers) > 0 {
		headers = make(amqp.Table, len(p.message.Headers))
		for name, value := range p.message.Headers {
			headers[name] = value
		}
	}
	key := cmp.Or(p.message.RoutingKey, l.config.RoutingKey)
	l.frames.Lock()
	confirmed, err := l.channel.PublishWithDeferredConfirm(l.config.Exchange, key, false, false,
		amqp.Publishing{ContentType: "application/json", DeliveryMode: amqp.Persistent, MessageId: p.message.ID,
			UserId: l.UserID(), Headers: headers, Body: p.message.Body})
	l.frames.Unlock()
	if err != nil {
		l.end(l.connection.fail(err, Refused))
	}
	p.confirmed, p.message.Body = confirmed, nil
	l.flight = append(l.flight, p)
}

// finish ends the rest of the link: the channel, and publications not confirmed by then.
func (l *Link) finish() {
	c := l.connection
	c.mu.Lock()
	delete(c.links, l)
	c.mu.Unlock()
	l.stopDelivering()
	l.closeChannel()
	l.mu.Lock()
	rest := append(l.flight, l.queue...)
	l.queue, l.flight, l.unconfirmed = nil, nil, 0
	err := l.err
	l.idle.Broadcast()
	l.mu.Unlock()
	for _, p := range rest {
		p.done(err)
	}
	close(l.done)
}

// closeChannel closes the channel, and releases the connection then. It waits a moment for the broker's answer: other
// links of the connection do not suffer from a later one, as from a broker taking nothing at the moment.
func (l *Link) closeChannel() {
	c := l.connection
	closed := make(chan struct{})
	c.pool.work.Go(func() { // the calling goroutine holds work
		defer close(closed)
		defer c.expect(silenceTimeout)()
		l.frames.Lock() // a late answer would be taken for the close's
		_ = l.channel.Close()
		l.frames.Unlock()
		c.release()
	})
	select {
	case <-closed:
	case <-time.After(closeTimeout):
	}
}

// end has the link end because of err, unless it ends already.
func (l *Link) end(err *Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
		l.idle.Broadcast()
	}
	l.wake()
}

// wake has the writing goroutine look at the link.
func (l *Link) wake() {
	select {
	case l.signal <- struct{}{}:
	default:
	}
}

func (l *Link) fail(kind Kind, reason string) *Error { return l.config.Address.fail(kind, nil, reason) }
