// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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
	tls  *tls.Config // nil for none
	h2   bool        // HTTP/2, callsPerConn calls at once over one connection
	path string
	body func(dst []byte, n int64) []byte // the n-th request
	// header appends further fields of the n-th request over HTTP/1.1; nil for none
	header func(dst []byte, n int64) []byte
	want   func(dst []byte, n int64) []byte // what its answer holds, and no other
	also   []byte                           // what every answer holds
}

// callsPerConn is how many calls share a connection of HTTP/2.
const callsPerConn = 8

// result is what a round of load has shown.
type result struct {
	rate      float64 // answers a second
	latencies []time.Duration
	cpu       time.Duration // of the gateway's process, per answer
}

// numbers gives every request of a run a number of its own.
var numbers atomic.Int64

// load puts a target under load by so many callers at once, for so long. It is hand-made because the generator shares
// the machine with what it measures.
func load(ctx context.Context, t target, callers int, d time.Duration) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	call := t.callHTTP1
	var all []func() ([]time.Duration, error)
	for i := range callers {
		if t.h2 && i%callsPerConn == 0 {
			transport := &http.Transport{TLSClientConfig: t.tls.Clone(), ForceAttemptHTTP2: true}
			defer transport.CloseIdleConnections()
			call = func(ctx context.Context) ([]time.Duration, error) { return t.callHTTP2(ctx, transport) }
		}
		caller := call
		all = append(all, func() ([]time.Duration, error) { return caller(ctx) })
	}
	return gather(all)
}

// gather has callers call at the same time, and returns how long all their answers took.
func gather(callers []func() ([]time.Duration, error)) (result, error) {
	var group sync.WaitGroup
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	began := time.Now()
	for _, caller := range callers {
		group.Go(func() {
			latencies, err := caller()
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

// dial opens a connection to the target.
func (t *target) dial() (net.Conn, error) {
	if t.tls == nil {
		return net.Dial("tcp", t.addr)
	}
	config := t.tls.Clone()
	config.NextProtos = []string{"http/1.1"}
	return tls.Dial("tcp", t.addr, config)
}

// check reports whether an answer is that of the n-th request.
func (t *target) check(answer []byte, n int64) error {
	if !bytes.Contains(answer, t.want(nil, n)) || !bytes.Contains(answer, t.also) {
		return fmt.Errorf("%s answered %s", t.name, answer)
	}
	return nil
}

// callHTTP1 sends one request after the other over one connection.
func (t *target) callHTTP1(ctx context.Context) ([]time.Duration, error) {
	conn, err := t.dial()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	c := connection{target: t, conn: conn, in: bufio.NewReaderSize(conn, 16<<10)}
	latencies := make([]time.Duration, 0, 1<<14)
	for ctx.Err() == nil {
		latency, err := c.call()
		if err != nil {
			return latencies, err
		}
		latencies = append(latencies, latency)
	}
	return latencies, nil
}

// callOnce sends one request over a connection of its own.
func (t *target) callOnce() error {
	conn, err := t.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = (&connection{target: t, conn: conn, in: bufio.NewReader(conn)}).call()
	return err
}

// connection is one of HTTP/1.1.
type connection struct {
	*target
	conn                      net.Conn
	in                        *bufio.Reader
	out, sent, fields, answer []byte
}

// call sends a request, and returns how long its answer took.
func (c *connection) call() (latency time.Duration, err error) {
	n := numbers.Add(1)
	c.sent = c.body(c.sent[:0], n)
	if c.header != nil {
		c.fields = c.header(c.fields[:0], n)
	}
	c.out = fmt.Appendf(c.out[:0],
		"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
		c.path, c.fields, len(c.sent), c.sent)
	began := time.Now()
	if _, err := c.conn.Write(c.out); err != nil {
		return 0, err
	}
	if c.answer, err = read(c.in, c.answer); err != nil {
		return 0, err
	}
	latency = time.Since(began)
	return latency, c.check(c.answer, n)
}

// callHTTP2 sends one request after the other over a connection that others use, too.
func (t *target) callHTTP2(ctx context.Context, transport *http.Transport) ([]time.Duration, error) {
	var latencies []time.Duration
	for ctx.Err() == nil {
		n := numbers.Add(1)
		body := t.body(nil, n)
		began := time.Now()
		req, err := http.NewRequest(http.MethodPost, "https://"+t.addr+t.path, bytes.NewReader(body))
		if err != nil {
			return latencies, err
		}
		req.Host = "localhost"
		req.Header.Set("Content-Type", "application/json")
		res, err := transport.RoundTrip(req)
		if err != nil {
			return latencies, err
		}
		answer, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil {
			return latencies, err
		}
		latencies = append(latencies, time.Since(began))
		if res.ProtoMajor != 2 {
			return latencies, fmt.Errorf("%s speaks %s, and not HTTP/2", t.name, res.Proto)
		}
		if err := t.check(answer, n); err != nil {
			return latencies, err
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
