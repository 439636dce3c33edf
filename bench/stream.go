// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// spring is where streams come from: one request opens one, and its events are counted up to the last.
type spring struct {
	name string
	addr string
	path string
	body func(n int64, text string) []byte
	last []byte // what the last event holds
}

func aipStream(s *site) spring {
	return spring{
		"aip_gateway",
		s.addr(portGateway),
		"/stream",
		func(n int64, text string) []byte { return streamBody("leader", "start", n, text, "") },
		[]byte(`"awaiting-completion"`),
	}
}

func streamBody(sender, command string, n int64, text, params string) []byte {
	return fmt.Appendf(
		nil,
		`{"jsonrpc":"2.0","method":"stream","id":"1","params":{"message":{"type":"message","id":"m-%s",`+
			`"senderRole":"leader","senderId":%q,"command":%q,%s"taskId":"stream-%s-%d","sessionId":"s",`+
			`"dataItems":[{"type":"text","text":%q}]}}}`,
		command,
		sender,
		command,
		params,
		salt,
		n,
		text,
	)
}

func proxyStream(s *site) spring {
	return spring{"reverse_proxy", s.addr(portProxy), "/", func(n int64, text string) []byte {
		return fmt.Appendf(
			nil,
			`{"jsonrpc":"2.0","id":"1","method":"tasks/sendSubscribe","params":{"id":"stream-%s-%d","sessionId":"s",`+
				`"message":{"role":"user","parts":[{"type":"text","text":%q}]}}}`,
			salt,
			n,
			text,
		)
	}, []byte(`"completed"`)}
}

// drink opens a stream and calls each for every event, up to the last.
func (p *spring) drink(ctx context.Context, n int64, text string, each func(line []byte)) error {
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	body := p.body(n, text)
	if _, err := fmt.Fprintf(conn,
		"POST %s HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: "+
			"%d\r\n\r\n%s", p.path, p.addr, len(body), body); err != nil {
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

// streams measures events a second, and how much later than the agent sends it an event arrives.
func streams(ctx context.Context, o settings) error {
	s, err := newSite(ctx, o.caddy, "pebble DIR", nil)
	if err != nil {
		return err
	}
	defer s.close()
	springs := []spring{aipStream(s), proxyStream(s)}
	for _, c := range []struct {
		open, pieces, pace int
	}{{1, 5000, 0}, {200, 100, 0}, {1, 100, 10}, {200, 100, 50}} {
		what, unit := "as fast as they come", "events/s"
		if c.pace > 0 {
			unit = "µs"
			what = fmt.Sprintf("delay of an event, one every %d ms", c.pace)
		}
		results := o.table(fmt.Sprintf("%d streams of %d events: %s", c.open, c.pieces, what), unit)
		var medians [2][]float64
		for round := range max(2, o.rounds/2) {
			for i := range springs {
				i = (i + round) % 2
				value, err := pour(ctx, springs[i], c.open, c.pieces, c.pace)
				if err != nil {
					return fmt.Errorf("%s: %w", springs[i].name, err)
				}
				medians[i] = append(medians[i], value)
			}
		}
		a, b := median(medians[0]), median(medians[1])
		if c.pace > 0 {
			results.row(springs[0].name, a/1e3)
			results.row(springs[1].name, b/1e3)
			results.row("added by the gateway", (a-b)/1e3)
		} else {
			results.row(springs[0].name, a)
			results.row(springs[1].name, b)
			results.row("ratio", a/b)
		}
	}
	return nil
}

// pour opens streams at once. It returns events a second, or, with a pace in milliseconds, the median delay of
// an event in nanoseconds.
func pour(ctx context.Context, p spring, open, pieces, pace int) (float64, error) {
	var group sync.WaitGroup
	var mu sync.Mutex
	var failed error
	var delays []time.Duration
	count := 0
	began := time.Now()
	for range open {
		n := numbers.Add(1)
		group.Go(func() {
			seen := 0
			var late []time.Duration
			err := p.drink(
				ctx,
				n,
				fmt.Sprintf("%s %d %d", map[bool]string{true: "clock", false: "stream"}[pace > 0], pieces, pace),
				func(line []byte) {
					seen++
					if at, ok := sentAt(line); ok && pace > 0 {
						late = append(late, time.Since(at))
					}
				},
			)
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
			count += seen
			delays = append(delays, late...)
		})
	}
	group.Wait()
	if failed != nil {
		return 0, failed
	}
	if pace == 0 {
		return float64(count) / time.Since(began).Seconds(), nil
	}
	if len(delays) == 0 {
		return 0, errors.New("no event says when it was sent: the binary is of another version than the measurement")
	}
	slices.Sort(delays)
	return float64(percentile(delays, 0.5)), nil
}

// replays measures the replay of a long task, and one task with many followers.
func replays(ctx context.Context, o settings) error {
	s, err := newSite(ctx, o.caddy, "pebble DIR {\n\t\t\tmax_events 30000\n\t\t}", nil)
	if err != nil {
		return err
	}
	defer s.close()
	p := aipStream(s)
	long := numbers.Add(1)
	if err := p.drink(ctx, long, "stream 10000 0", func([]byte) {}); err != nil {
		return err
	}
	again := p
	again.body = func(n int64, _ string) []byte { return streamBody("leader", "re-stream", n, "", "") }
	var rates []float64
	for range o.rounds {
		count := 0
		began := time.Now()
		if err := again.drink(ctx, long, "", func([]byte) { count++ }); err != nil {
			return err
		}
		rates = append(rates, float64(count)/time.Since(began).Seconds())
	}
	o.table("replay of a task with 10,000 events", "events/s").row("aip_gateway", median(rates))

	const followers, pieces = 1000, 100
	shared := numbers.Add(1)
	var group sync.WaitGroup
	var mu sync.Mutex
	var failed error
	count := 0
	if err := p.drink(ctx, shared, "hello", func([]byte) {}); err != nil { // it exists and rests
		return err
	}
	before, err := s.cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	begin := p
	begin.last = []byte(`"lastChunk":true`)
	begin.body = func(n int64, text string) []byte { return streamBody("leader", "continue", n, text, "") }
	var ready sync.WaitGroup
	ready.Add(followers)
	end := again
	end.last = fmt.Appendf(nil, `chunk-%d `, pieces-1)
	for range followers {
		group.Go(func() {
			seen := 0
			err := end.drink(ctx, shared, "", func([]byte) {
				if seen++; seen == 1 {
					ready.Done()
				}
			})
			mu.Lock()
			defer mu.Unlock()
			count += seen
			failed = errors.Join(failed, err)
		})
	}
	ready.Wait()
	if err := begin.drink(ctx, shared, fmt.Sprintf("stream %d 20", pieces), func([]byte) {}); err != nil {
		return err
	}
	group.Wait()
	after, err := s.cpu()
	if err != nil {
		return err
	}
	o.table(fmt.Sprintf("one task with %d followers, an event every 20 ms", followers), "events/s", "CPU µs each").
		row("aip_gateway", float64(count)/time.Since(began).Seconds(), micros(after-before)/float64(count))
	return failed
}

// idle measures the memory of a stream that waits: the slope of the gateway's RSS over open streams.
func idle(ctx context.Context, o settings) error {
	results := o.table("memory of an idle stream with mutual TLS, gateway's side", "KiB each")
	for _, c := range []struct {
		name string
		h2   bool
	}{{"HTTP/1.1", false}, {"HTTP/2, 100 streams a connection", true}} {
		if err := idleOver(ctx, o, results, c.name, c.h2); err != nil {
			return err
		}
	}
	return nil
}

func idleOver(ctx context.Context, o settings, results *table, name string, h2 bool) error {
	s, err := newSite(ctx, o.caddy, "pebble DIR", nil)
	if err != nil {
		return err
	}
	defer s.close()
	cert, err := tls.LoadX509KeyPair(s.pki.Leader.Cert, s.pki.Leader.Key)
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(s.pki.CA.Cert)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	newTransport := func() *http.Transport {
		t := &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}},
			ForceAttemptHTTP2: h2,
		}
		if !h2 {
			t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
		}
		return t
	}
	url := fmt.Sprintf("https://localhost:%d/stream", s.ports[portTLS])
	var open []io.Closer
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	transport := newTransport()
	more := func(upTo int) error {
		for len(open) < upTo {
			if h2 && len(open)%100 == 0 {
				transport = newTransport()
			}
			command := "re-stream"
			if len(open) == 0 {
				command = "start"
			}
			req, err := http.NewRequestWithContext(
				ctx,
				http.MethodPost,
				url,
				bytes.NewReader(streamBody(string(s.pki.Leader.AIC), command, 0, "hello", "")),
			)
			if err != nil {
				return err
			}
			req.Header.Set("Content-Type", "application/json")
			res, err := transport.RoundTrip(req)
			if err != nil {
				return err
			}
			open = append(open, res.Body)
			if err := events(res.Body, []byte(`"awaiting-completion"`), func([]byte) {}); err != nil {
				return err
			}
		}
		return nil
	}
	const few, many = 1000, 5000
	var at [2]float64
	for i, n := range []int{few, many} {
		if err := more(n); err != nil {
			return err
		}
		select { // let the collector come by
		case <-time.After(20 * time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
		if at[i], err = s.rss(); err != nil {
			return err
		}
	}
	results.row(name, (at[1]-at[0])/(many-few)/1024)
	return nil
}
