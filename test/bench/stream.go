// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// source is where streams come from: one request opens one, and its events are counted up to the last.
type source struct {
	target
	open func(n int64, text string) []byte // the body of the request
	last []byte                            // what the last event holds
}

func aipStream(s *site, w wire) source {
	t, sender := w.target(s, "aip_gateway", w.gateway), w.sender(s)
	t.path = "/stream"
	return source{t, func(n int64, text string) []byte { return streamBody(sender, "start", n, text, "") },
		[]byte(`"awaiting-completion"`)}
}

func streamBody(sender, command string, n int64, text, params string) []byte {
	return fmt.Appendf(nil,
		`{"jsonrpc":"2.0","method":"stream","id":"1","params":{"message":{"type":"message","id":"m-%s",`+
			`"senderRole":"leader","senderId":%q,"command":%q,%s"taskId":"stream-%s-%d","sessionId":"s",`+
			`"dataItems":[{"type":"text","text":%q}]}}}`, command, sender, command, params, salt, n, text)
}

func proxyStream(s *site, w wire) source {
	return source{w.target(s, "reverse_proxy", w.proxy), func(n int64, text string) []byte {
		return fmt.Appendf(nil,
			`{"jsonrpc":"2.0","id":"1","method":"tasks/sendSubscribe","params":{"id":"stream-%s-%d","sessionId":"s",`+
				`"message":{"role":"user","parts":[{"type":"text","text":%q}]}}}`, salt, n, text)
	}, []byte(`"completed"`)}
}

// read opens a stream and calls each for every event, up to the last.
func (p *source) read(ctx context.Context, n int64, text string, each func(line []byte)) error {
	conn, err := p.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	body := p.open(n, text)
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", p.path, len(body), body); err != nil {
		return err
	}
	res, err := http.ReadResponse(bufio.NewReaderSize(conn, 32<<10), nil)
	if err != nil {
		return err
	}
	return events(res.Body, p.last, each)
}

func events(from io.Reader, last []byte, each func(line []byte)) error {
	in := bufio.NewReaderSize(from, 32<<10)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if bytes.HasPrefix(line, []byte("data:")) {
			each(line)
			if bytes.Contains(line, last) {
				return nil
			}
		}
	}
}

// sentAt returns the time in a piece of the agent's "clock".
func sentAt(line []byte) (time.Time, bool) {
	_, after, ok := bytes.Cut(line, []byte(`"text":"`))
	if !ok {
		return time.Time{}, false
	}
	text, _, _ := bytes.Cut(after, []byte(` "`))
	ns, err := strconv.ParseInt(string(text), 10, 64)
	return time.Unix(0, ns), err == nil
}

// agentWork is what the agent does in each of several streams.
type agentWork struct {
	open, pieces int
	pace         int // milliseconds between two pieces; 0 for as fast as the caller reads
}

func (w agentWork) String() string {
	if w.pace == 0 {
		return fmt.Sprintf("%s of %d events as fast as they come", plural(w.open, "stream"), w.pieces)
	}
	return fmt.Sprintf("%s of %d events, one every %d ms", plural(w.open, "stream"), w.pieces, w.pace)
}

// text is the message that has the agent do the work.
func (w agentWork) text() string {
	if w.pace == 0 {
		return fmt.Sprintf("stream %d 0", w.pieces)
	}
	return fmt.Sprintf("clock %d %d", w.pieces, w.pace)
}

// streams measures events a second, and how much later than the agent sends it an event arrives.
func streams(ctx context.Context, o settings) error { return streamsOver(ctx, o, plain) }

// streamsTLS is streams over mutual TLS.
func streamsTLS(ctx context.Context, o settings) error { return streamsOver(ctx, o, mtls1) }

func streamsOver(ctx context.Context, o settings, w wire) error {
	s, err := newSite(ctx, o.caddy, siteConfig{})
	if err != nil {
		return err
	}
	defer s.close()
	sources := []source{aipStream(s, w), proxyStream(s, w)}
	for _, work := range []agentWork{{1, 20000, 0}, {200, 500, 0}, {1, 200, 10}, {200, 100, 50}} {
		var all [2][]result
		for round := range max(2, o.rounds/2) {
			for i := range sources {
				i = (i + round) % 2
				r, err := s.flow(ctx, sources[i], work)
				if err != nil {
					return fmt.Errorf("%s: %w", sources[i].name, err)
				}
				all[i] = append(all[i], r)
			}
		}
		a, b := summary(all[0]), summary(all[1])
		columns, use := []string{"p50 µs", "p99 µs", "CPU µs each"}, []int{1, 2, 3}
		if work.pace == 0 {
			columns, use = []string{"events/s", "CPU µs each"}, []int{0, 3}
		}
		results := o.table(work.String()+", "+w.name, columns...)
		values := func(of func(column int) float64) (list []float64) {
			for _, column := range use {
				list = append(list, of(column))
			}
			return list
		}
		results.row(sources[0].name, values(func(column int) float64 { return a[column] })...)
		results.row(sources[1].name, values(func(column int) float64 { return b[column] })...)
		results.row("ratio", values(func(column int) float64 { return a[column] / b[column] })...)
	}
	return nil
}

// flow opens streams at once, and reads each to its end. The latencies are the delays of the events that say when they
// were sent.
func (s *site) flow(ctx context.Context, p source, work agentWork) (result, error) {
	var group sync.WaitGroup
	var mu sync.Mutex
	var failed error
	var delays []time.Duration
	count := 0
	before, err := s.cpu()
	if err != nil {
		return result{}, err
	}
	began := time.Now()
	for range work.open {
		n := numbers.Add(1)
		group.Go(func() {
			seen := 0
			var late []time.Duration
			err := p.read(ctx, n, work.text(), func(line []byte) {
				seen++
				if work.pace > 0 {
					if at, ok := sentAt(line); ok {
						late = append(late, time.Since(at))
					}
				}
			})
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
			count += seen
			delays = append(delays, late...)
		})
	}
	group.Wait()
	took := time.Since(began)
	after, err := s.cpu()
	if err := errors.Join(failed, err); err != nil {
		return result{}, err
	}
	if work.pace > 0 && len(delays) == 0 {
		return result{}, errors.New("no event says when it was sent: the binary is of another version than this")
	}
	slices.Sort(delays)
	return result{rate: float64(count) / took.Seconds(), latencies: delays,
		cpu: (after - before) / time.Duration(max(1, count))}, nil
}
