// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"
)

// publisher is a client that only publishes, to streams like those of the gateways.
type publisher struct {
	conn    *nats.Conn
	js      jetstream.JetStream
	payload []byte
	each    int // messages that a start writes
}

// published is how many streams a publisher writes to: the default of shards.
const published = 16

// newPublisher makes the streams. A start writes so many messages, each of which takes so many bytes of a stream, with
// what the server adds.
func newPublisher(ctx context.Context, url string, size, messages int) (*publisher, error) {
	conn, err := nats.Connect(url)
	if err != nil {
		return nil, err
	}
	p := &publisher{conn: conn, payload: make([]byte, max(1, size-len(subject(0, 1<<20))-22)), each: messages}
	if p.js, err = jetstream.New(conn); err != nil {
		p.close()
		return nil, err
	}
	for i := range published {
		_, err := p.js.CreateStream(ctx, jetstream.StreamConfig{Name: fmt.Sprintf("bare-%d", i),
			Subjects: []string{fmt.Sprintf("bare.%d.>", i)}, Storage: jetstream.FileStorage, Replicas: gateways,
			MaxMsgsPerSubject: 1, AllowDirect: true, AllowAtomicPublish: true})
		if err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

func (p *publisher) close() { p.conn.Close() }

// subject is where the n-th message goes.
func subject(stream int, n int64) string { return fmt.Sprintf("bare.%d.%d", stream, n) }

// message publishes the n-th message.
func (p *publisher) message(ctx context.Context, n int64) error {
	_, err := p.js.Publish(ctx, subject(int(n%published), n), p.payload)
	return err
}

// start publishes what the n-th start writes: two batches, the second one when the first is acknowledged.
func (p *publisher) start(ctx context.Context, n int64) error {
	if err := p.batch(ctx, n, (p.each+1)/2); err != nil {
		return err
	}
	return p.batch(ctx, n, p.each/2)
}

// batch publishes so many messages, in one atomic batch if they are several.
func (p *publisher) batch(ctx context.Context, n int64, messages int) error {
	if messages == 1 {
		return p.message(ctx, n)
	}
	b, err := jetstreamext.NewBatchPublisher(p.js, jetstreamext.BatchFlowControl{})
	if err != nil {
		return err
	}
	at := subject(int(n%published), n)
	for i := range messages - 1 {
		if err := b.Add(fmt.Sprintf("%s.%d", at, i), p.payload); err != nil {
			return err
		}
	}
	_, err = b.Commit(ctx, at, p.payload)
	return err
}

// load calls publish so often at once, again as soon as it returns, for so long.
func (p *publisher) load(
	ctx context.Context, publish func(ctx context.Context, n int64) error, callers int, d time.Duration,
) (all result, failed error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var group sync.WaitGroup
	var mu sync.Mutex
	began := time.Now()
	for range callers {
		group.Go(func() {
			var latencies []time.Duration
			var err error
			for ctx.Err() == nil && err == nil {
				n := numbers.Add(1)
				sent := time.Now()
				if err = publish(ctx, n); err == nil {
					latencies = append(latencies, time.Since(sent))
				}
			}
			if ctx.Err() != nil { // the round has ended
				err = nil
			}
			mu.Lock()
			defer mu.Unlock()
			all.latencies = append(all.latencies, latencies...)
			failed = errors.Join(failed, err)
		})
	}
	group.Wait()
	slices.Sort(all.latencies)
	all.rate = float64(len(all.latencies)) / time.Since(began).Seconds()
	return all, failed
}
