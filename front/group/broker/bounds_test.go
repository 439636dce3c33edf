// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
)

// TestBlocked has the broker block publications. They are confirmed when it takes them again, and acknowledgments are
// sent meanwhile.
func TestBlocked(t *testing.T) {
	r, pool, config := start(t)
	alarm := func(do, id string) {
		t.Helper()
		if _, err := r.Eval(fmt.Sprintf("rabbit_alarm:%s(%s)", do, id)); err != nil {
			t.Fatal(err)
		}
	}
	link := join(t, pool, config)
	alarm("set_alarm", "{{resource_limit, memory, node()}, []}")
	const messages = 20
	confirms := make(chan error, messages)
	publish := func() {
		for i := range messages {
			if err := link.Publish(broker.Message{ID: fmt.Sprint(i)}, func(err error) { confirms <- err }); err != nil {
				t.Fatal(err)
			}
		}
	}
	confirmed := func() {
		for range messages {
			if err := <-confirms; err != nil {
				t.Error(err)
			}
		}
	}
	publish()
	asynctest.Eventually(t, "the broker blocks the connection", func() bool {
		if len(confirms) == messages { // before the connection's process knows of the alarm
			confirmed()
			publish()
		}
		return link.Blocked()
	})
	alarm("clear_alarm", "{resource_limit, memory, node()}")
	confirmed()
	asynctest.Eventually(t, "the link knows that the broker takes publications", func() bool { return !link.Blocked() })
	if err := link.Leave(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestLargeMessages publishes too large messages, which arrive empty, and more than may be held at once.
func TestLargeMessages(t *testing.T) {
	r, pool, config := start(t)
	config.MaxMessage = 6 << 20
	link := join(t, pool, config)
	leader := r.leader(t)
	publish := func(size int) {
		t.Helper()
		err := leader.Publish(exchange, "", false, false, amqp.Publishing{MessageId: fmt.Sprint(size),
			Body: make([]byte, size)})
		if err != nil {
			t.Fatal(err)
		}
	}
	sizes := []int{0, 6 << 20, 6<<20 + 1, 1, 20 << 20, 6 << 20, 6 << 20, 300_000, 6 << 20}
	for _, size := range sizes {
		publish(size)
	}
	held := make(chan *broker.Delivery, len(sizes))
	receive(t, link, func(d *broker.Delivery) { held <- d })
	for i, size := range sizes {
		d := <-held
		want := size
		if size > config.MaxMessage {
			want = 0
		}
		if d.ID != fmt.Sprint(size) || len(d.Body) != want {
			t.Fatalf("message %d has %d bytes, and is %s", i, len(d.Body), d.ID)
		}
		if i >= 2 { // two large ones are held at once
			d.Ack()
		} else {
			defer d.Ack()
		}
	}
	if err := link.Leave(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestPublicationsThatAreRefused publishes messages not taken by a queue of the group, and to a deleted exchange. The
// link ends, and with it all unconfirmed publications.
func TestPublicationsThatAreRefused(t *testing.T) {
	r, pool, config := start(t)
	config.Exchange = exchange + "-of-" + t.Name()
	leader := r.leader(t)
	full := "full-" + t.Name()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(leader.ExchangeDeclare(config.Exchange, amqp.ExchangeFanout, true, false, false, false, nil))
	_, err := leader.QueueDeclare(full, true, false, false, false,
		amqp.Table{"x-max-length": 1, "x-overflow": "reject-publish"})
	must(err)
	must(leader.QueueBind(full, "", config.Exchange, false, nil))
	publish := func(link *broker.Link, n int) (outcomes []error) {
		confirms := make(chan error, n)
		for range n {
			confirm := func(err error) { confirms <- err }
			if err := link.Publish(broker.Message{ID: "id"}, confirm); err != nil {
				confirm(err) // the link has ended by one of those before
			}
		}
		for range n {
			outcomes = append(outcomes, <-confirms)
		}
		return outcomes
	}

	link := join(t, pool, config)
	got := publish(link, 5)
	ends(t, link, broker.Refused)
	if got[0] != nil || slices.Contains(got[1:], nil) {
		t.Errorf("the outcomes are %v", got)
	}

	link = join(t, pool, config)
	must(leader.ExchangeDelete(config.Exchange, false, false))
	got = publish(link, 2)
	ends(t, link, broker.NoExchange)
	if slices.Contains(got, nil) {
		t.Errorf("the outcomes are %v", got)
	}
	for _, name := range []string{full, config.Queue} {
		_, err := leader.QueueDelete(name, false, false, false)
		must(err)
	}
}
