// SPDX-License-Identifier: Apache-2.0

package group

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
)

// brokers are brokers with the queues of one agent, by the address of the broker. They stand in for a broker.Pool.
type brokers struct {
	mu      sync.Mutex
	byName  map[string]*fakeBroker // by host
	joins   []broker.Config        // the requested ones
	events  []string               // all events, in order
	closed  bool
	waiting int // joins not answered by a hanging broker
}

// fakeBroker is a broker.
type fakeBroker struct {
	all     *brokers
	cluster string
	fails   *broker.Error           // of every join
	lacks   *broker.Error           // of every join with an exchange
	refuses func(broker.Login) bool // of a login
	hangs   bool                    // a join is answered when its context ends
	noRead  bool                    // a link may not consume
	blocked bool                    // it takes no publications
	queues  map[string]*fakeQueue
	links   []*fakeLink
	holds   bool // nothing is confirmed
	keeps   int  // deletions of queues still to fail
	sent    []broker.Message
}

// fakeQueue holds the messages not at a link.
type fakeQueue struct{ messages []string }

func newBrokers(hosts ...string) *brokers {
	b := &brokers{byName: make(map[string]*fakeBroker)}
	for _, h := range hosts {
		b.byName[h] = &fakeBroker{all: b, cluster: "rabbit@" + h, queues: make(map[string]*fakeQueue)}
	}
	return b
}

// note appends an event. The caller holds mu.
func (b *brokers) note(event string) { b.events = append(b.events, event) }

// Join implements dialer.
func (b *brokers) Join(ctx context.Context, c broker.Config) (link, error) {
	b.mu.Lock()
	b.joins = append(b.joins, c)
	at := b.byName[c.Address.Host]
	if at == nil {
		b.mu.Unlock()
		return nil, brokerError(broker.Unreachable, c.Address.Host, "the host is unknown")
	}
	if at.hangs {
		b.waiting++
		b.mu.Unlock()
		<-ctx.Done()
		b.mu.Lock()
		b.waiting--
		b.mu.Unlock()
		return nil, brokerError(broker.NoAnswer, c.Address.Host, "nothing answered in time")
	}
	defer b.mu.Unlock()
	switch {
	case at.fails != nil:
		return nil, at.fails
	case at.lacks != nil && c.Exchange != "":
		return nil, at.lacks
	case at.refuses != nil && at.refuses(c.Login):
		return nil, brokerError(broker.LoginRefused, c.Address.Host, "ACCESS_REFUSED")
	}
	made := false
	if at.queues[c.Queue] == nil {
		if !c.Declare {
			return nil, brokerError(broker.QueueGone, c.Address.Host, "no queue")
		}
		b.note("declare " + c.Queue)
		at.queues[c.Queue] = new(fakeQueue)
		made = true
	}
	l := &fakeLink{at: at, config: c, made: made, done: make(chan struct{})}
	at.links = append(at.links, l)
	b.note("join " + c.Address.Host)
	return l, nil
}

// Close implements dialer.
func (b *brokers) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, at := range b.byName {
		if len(at.links) > 0 {
			panic("a link is open when the pool is closed")
		}
	}
}

func brokerError(kind broker.Kind, host, reason string) *broker.Error {
	return &broker.Error{Kind: kind, Host: host, Port: 5672, Reason: reason}
}

// change changes brokers while nothing else happens to them.
func (b *brokers) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// asked returns the requested links.
func (b *brokers) asked() []broker.Config {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.joins)
}

// took returns the events since the last call.
func (b *brokers) took() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := b.events
	b.events = nil
	return events
}

// publish adds a message to every queue of a broker, and has it delivered.
func (at *fakeBroker) publish(body string) {
	at.all.mu.Lock()
	for _, q := range at.queues {
		q.messages = append(q.messages, body)
	}
	at.all.mu.Unlock()
	at.deliver()
}

// deliver has the last link to consume take the messages of its queue.
func (at *fakeBroker) deliver() {
	for {
		at.all.mu.Lock()
		var to *fakeLink
		for _, l := range at.links {
			if l.receive != nil && len(at.queues[l.config.Queue].messages) > 0 && !l.paused {
				to = l
			}
		}
		if to == nil {
			at.all.mu.Unlock()
			return
		}
		q := at.queues[to.config.Queue]
		body := q.messages[0]
		q.messages = q.messages[1:]
		to.unacked = append(to.unacked, body)
		receive := to.receive
		at.all.mu.Unlock()
		receive(&broker.Delivery{Body: []byte(body), Acknowledger: ack(func() { to.ack(body) })})
	}
}

// ack is called when a delivery is acknowledged.
type ack func()

func (f ack) Ack(uint64) { f() }

// cut ends all links of a broker, with an error of a kind. With QueueGone, the queues are deleted.
func (at *fakeBroker) cut(kind broker.Kind) {
	at.all.mu.Lock()
	links := slices.Clone(at.links)
	if kind == broker.QueueGone {
		clear(at.queues)
	}
	at.all.mu.Unlock()
	for _, l := range links {
		l.end(brokerError(kind, l.config.Address.Host, "cut"))
	}
}

// fakeLink is a link to a fakeBroker.
type fakeLink struct {
	at     *fakeBroker
	config broker.Config
	made   bool
	done   chan struct{}

	// under brokers.mu
	receive     func(*broker.Delivery)
	paused      bool // nothing is delivered
	unacked     []string
	unconfirmed []func(error)
	err         error
}

// Receive implements link.
func (l *fakeLink) Receive(_ context.Context, deliver func(*broker.Delivery)) error {
	l.at.all.mu.Lock()
	if l.at.noRead {
		l.at.all.mu.Unlock()
		return brokerError(broker.PermissionDenied, l.config.Address.Host, "ACCESS_REFUSED - read access")
	}
	for _, other := range l.at.links {
		if other != l && other.receive != nil && other.config.Queue == l.config.Queue {
			panic("two links consume from one queue")
		}
	}
	l.receive = deliver
	l.at.all.note("consume " + l.config.Address.Host)
	l.at.all.mu.Unlock()
	l.at.deliver()
	return nil
}

func (l *fakeLink) ack(body string) {
	l.at.all.mu.Lock()
	defer l.at.all.mu.Unlock()
	if i := slices.Index(l.unacked, body); i >= 0 && l.err == nil {
		l.unacked = slices.Delete(l.unacked, i, i+1)
		l.at.all.note("ack " + body)
	}
}

// Publish implements link.
func (l *fakeLink) Publish(m broker.Message, done func(error)) error {
	l.at.all.mu.Lock()
	defer l.at.all.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	l.at.sent = append(l.at.sent, m)
	l.at.all.note("publish " + m.ID)
	if l.at.holds {
		l.unconfirmed = append(l.unconfirmed, done)
	} else {
		go done(nil)
	}
	return nil
}

// Idle implements link.
func (l *fakeLink) Idle(context.Context) (bool, error) {
	l.at.all.mu.Lock()
	defer l.at.all.mu.Unlock()
	if l.err != nil {
		return false, l.err
	}
	return len(l.unacked) == 0 && len(l.at.queues[l.config.Queue].messages) == 0, nil
}

// Info implements link.
func (l *fakeLink) Info() broker.Info {
	return broker.Info{Product: "fake", ClusterName: l.at.cluster,
		VHost: l.config.Address.VHost}
}

// Blocked implements link.
func (l *fakeLink) Blocked() bool {
	l.at.all.mu.Lock()
	defer l.at.all.mu.Unlock()
	return l.at.blocked
}

// Leave implements link.
func (l *fakeLink) Leave(context.Context) error {
	l.at.all.mu.Lock()
	if l.at.keeps > 0 {
		l.at.keeps--
		l.at.all.mu.Unlock()
		l.Close()
		return brokerError(broker.Closed, l.config.Address.Host, "closed")
	}
	if l.err == nil {
		l.at.all.note("delete " + l.config.Queue + " at " + l.config.Address.Host)
		delete(l.at.queues, l.config.Queue)
	}
	l.at.all.mu.Unlock()
	l.Close()
	return nil
}

// Undo implements link.
func (l *fakeLink) Undo(ctx context.Context) {
	if l.made {
		_ = l.Leave(ctx)
	}
	l.Close()
}

// Close implements link.
func (l *fakeLink) Close() { l.end(brokerError(broker.Closed, l.config.Address.Host, "closed")) }

// end ends the link. Messages not acknowledged are in the queue again.
func (l *fakeLink) end(err error) {
	l.at.all.mu.Lock()
	if l.err != nil {
		l.at.all.mu.Unlock()
		return
	}
	l.err = err
	l.at.links = slices.DeleteFunc(l.at.links, func(other *fakeLink) bool { return other == l })
	if q := l.at.queues[l.config.Queue]; q != nil {
		q.messages = append(slices.Clone(l.unacked), q.messages...)
	}
	failed := l.unconfirmed
	l.at.all.note("close " + l.config.Address.Host)
	close(l.done)
	l.at.all.mu.Unlock()
	for _, done := range failed {
		done(err)
	}
	l.at.deliver()
}

// Done implements link.
func (l *fakeLink) Done() <-chan struct{} { return l.done }

// Err implements link.
func (l *fakeLink) Err() error {
	l.at.all.mu.Lock()
	defer l.at.all.mu.Unlock()
	return l.err
}

// checkEvents checks the events at the brokers since the last time. Message ids are left out.
func (b *brokers) checkEvents(t *testing.T, want ...string) {
	t.Helper()
	got := b.took()
	for i, e := range got {
		if strings.HasPrefix(e, "publish status-") {
			got[i] = "publish status"
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("at the brokers there was\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}
