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
)

// publisher is a client that only publishes, to streams like those of the gateways.
type publisher struct {
	conn    *nats.Conn
	js      jetstream.JetStream
	payload []byte
}

// published is how many streams a publisher writes to: the default of shards.
const published = 16

// newPublisher makes the streams. Messages take so many bytes of a stream, with what the server adds.
func newPublisher(ctx context.Context, url string, size int) (*publisher, error) {
	conn, err := nats.Connect(url)
	if err != nil {
		return nil, err
	}
	p := &publisher{conn: conn, payload: make([]byte, max(1, size-len(subject(0, 1<<20))-22))}
	if p.js, err = jetstream.New(conn); err != nil {
		p.close()
		return nil, err
	}
	for i := range published {
		_, err := p.js.CreateStream(ctx, jetstream.StreamConfig{Name: fmt.Sprintf("bare-%d", i),
			Subjects: []string{fmt.Sprintf("bare.%d.>", i)}, Storage: jetstream.FileStorage, Replicas: gateways,
			MaxMsgsPerSubject: 1, AllowDirect: true})
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

// load publishes so many messages at once, each as soon as the one before it is acknowledged, for so long.
func (p *publisher) load(ctx context.Context, callers int, d time.Duration) (all result, failed error) {
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
				if _, err = p.js.Publish(ctx, subject(int(n%published), n), p.payload); err == nil {
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
