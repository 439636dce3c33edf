// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"context"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
)

var benchBody = []byte(strings.Repeat("x", 1024))

// BenchmarkLink publishes messages to a group. Its own queue gets them back, confirmed and acknowledged.
func BenchmarkLink(b *testing.B) {
	_, pool, config := start(b)
	link := join(b, pool, config)
	got := make(chan struct{}, broker.MaxUnconfirmed)
	receive(b, link, func(d *broker.Delivery) {
		d.Ack()
		got <- struct{}{}
	})
	free := make(chan struct{}, broker.MaxUnconfirmed)
	b.ReportAllocs()
	b.ResetTimer()
	go func() {
		for range b.N {
			free <- struct{}{}
			err := link.Publish(broker.Message{ID: "0123456789abcdef", Body: benchBody}, func(err error) {
				if err != nil {
					b.Error(err)
				}
				<-free
			})
			if err != nil {
				b.Error(err)
			}
		}
	}()
	for range b.N {
		<-got
	}
	b.StopTimer()
	if err := link.Leave(context.Background()); err != nil {
		b.Error(err)
	}
}

// BenchmarkBare does the same by the AMQP library alone.
func BenchmarkBare(b *testing.B) {
	r, _, config := start(b)
	channel := r.leader(b)
	_, err := channel.QueueDeclare(config.Queue, true, false, false, false, nil)
	if err == nil {
		err = channel.QueueBind(config.Queue, "", exchange, false, nil)
	}
	if err == nil {
		err = channel.Qos(broker.DefaultPrefetch, 0, false)
	}
	if err == nil {
		err = channel.Confirm(false)
	}
	deliveries, err2 := channel.Consume(config.Queue, "", false, false, false, false, nil)
	if err != nil || err2 != nil {
		b.Fatal(err, err2)
	}
	confirms := make(chan *amqp.DeferredConfirmation, broker.MaxUnconfirmed)
	b.ReportAllocs()
	b.ResetTimer()
	go func() {
		for c := range confirms {
			if !c.Wait() {
				b.Error("not confirmed")
			}
		}
	}()
	go func() {
		defer close(confirms)
		for range b.N {
			c, err := channel.PublishWithDeferredConfirm(exchange, "", false, false, amqp.Publishing{
				MessageId: "0123456789abcdef", UserId: "leader", DeliveryMode: amqp.Persistent,
				ContentType: "application/json", Body: benchBody})
			if err != nil {
				b.Error(err)
				return
			}
			confirms <- c
		}
	}()
	for range b.N {
		d := <-deliveries
		if err := d.Ack(false); err != nil {
			b.Error(err)
		}
	}
	b.StopTimer()
	if _, err := channel.QueueDelete(config.Queue, false, false, false); err != nil {
		b.Error(err)
	}
}
