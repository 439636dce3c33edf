// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// target is what a load is put on: an address, and requests of which every one must be answered rightly.
type target struct {
	name string
	addr string
	path string
	body func(dst []byte, n int64) []byte // the n-th request
	want func(dst []byte, n int64) []byte // what its answer holds, and no other
	also []byte                           // what every answer holds
}

// result is what a round of load has shown.
type result struct {
	rate      float64 // answers a second
	latencies []time.Duration
	cpu       time.Duration // of the gateway's process, per answer
}

// numbers gives every request of a run a number of its own.
var numbers atomic.Int64

// load puts a target under load over so many connections, for so long. It is hand-made because the generator
// shares the machine with what it measures.
func load(ctx context.Context, t target, conns int, d time.Duration) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var group sync.WaitGroup
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	began := time.Now()
	for range conns {
		group.Go(func() {
			latencies, err := t.knock(ctx)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, latencies...)
			failed = errors.Join(failed, err)
		})
	}
	group.Wait()
	slices.Sort(all)
	return result{rate: float64(len(all)) / time.Since(began).Seconds(), latencies: all}, failed
}

// knock sends one request after the other over one connection.
func (t *target) knock(ctx context.Context) ([]time.Duration, error) {
	conn, err := net.Dial("tcp", t.addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	in := bufio.NewReaderSize(conn, 16<<10)
	var out, body, answer, want []byte
	latencies := make([]time.Duration, 0, 1<<14)
	for ctx.Err() == nil {
		n := numbers.Add(1)
		body, want = t.body(body[:0], n), t.want(want[:0], n)
		out = fmt.Appendf(
			out[:0],
			"POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
			t.path,
			t.addr,
			len(body),
		)
		out = append(out, body...)
		began := time.Now()
		if _, err := conn.Write(out); err != nil {
			return latencies, err
		}
		if answer, err = read(in, answer); err != nil {
			return latencies, err
		}
		latencies = append(latencies, time.Since(began))
		if !bytes.Contains(answer, want) || !bytes.Contains(answer, t.also) {
			return latencies, fmt.Errorf("%s answered %s", t.name, answer)
		}
	}
	return latencies, nil
}

var contentLength = []byte("Content-Length: ")

// read reads one answer, which must say its length.
func read(in *bufio.Reader, body []byte) ([]byte, error) {
	length := -1
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		switch {
		case first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200")):
			return nil, fmt.Errorf("answered %q", line)
		case bytes.HasPrefix(line, contentLength):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(contentLength):]))); err != nil {
				return nil, err
			}
		case len(line) == 2:
			if length < 0 {
				return nil, errors.New("an answer without a length")
			}
			body = slices.Grow(body[:0], length)[:length]
			_, err := io.ReadFull(in, body)
			return body, err
		}
	}
}
