// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
)

// The memory of a resting stream is the slope between these numbers of streams.
const idleFew, idleMany = 2000, 10_000

// idle measures the memory of a stream that waits: the slope of the gateway's RSS over open streams.
func idle(ctx context.Context, o settings) error {
	results := o.table("memory of an idle stream with mutual TLS, gateway's side", "KiB each")
	for _, w := range []wire{mtls1, mtls2} {
		each, err := idleOver(ctx, o, w)
		if err != nil {
			return err
		}
		results.row(w.name, each)
	}
	return nil
}

// idleOver opens streams that wait, 100 over each connection of HTTP/2, and returns what each takes, in KiB.
func idleOver(ctx context.Context, o settings, w wire) (float64, error) {
	s, err := newSite(ctx, o.caddy, siteConfig{})
	if err != nil {
		return 0, err
	}
	defer s.close()
	p := reStream(s, w)
	if err := s.startTask(ctx, w); err != nil {
		return 0, err
	}
	var open []io.Closer
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	var shared *http.Transport
	var at [2]float64
	for i, n := range []int{idleFew, idleMany} {
		for len(open) < n {
			var c io.Closer
			if w.h2 {
				if len(open)%100 == 0 {
					shared = &http.Transport{TLSClientConfig: s.leader.Clone(), ForceAttemptHTTP2: true}
				}
				c, err = p.waitOver(ctx, shared)
			} else {
				c, err = p.waitAlone()
			}
			if err != nil {
				return 0, err
			}
			open = append(open, c)
		}
		if at[i], err = s.idleRSS(ctx); err != nil {
			return 0, err
		}
	}
	return (at[1] - at[0]) / (idleMany - idleFew) / 1024, nil
}

// startTask makes the task that the streams follow.
func (s *site) startTask(ctx context.Context, w wire) error {
	h1 := w
	h1.h2 = false
	p := aipStream(s, h1)
	return p.read(ctx, 0, "hello", func([]byte) {})
}

// waitAlone opens a stream over a connection of its own, and reads until nothing follows. It uses little memory.
func (p *source) waitAlone() (io.Closer, error) {
	conn, err := p.dial()
	if err != nil {
		return nil, err
	}
	body := p.open(0, "")
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", p.path, len(body), body); err != nil {
		return nil, err
	}
	if err := events(conn, p.last, func([]byte) {}); err != nil {
		return nil, fmt.Errorf("a stream did not begin: %w", err)
	}
	return conn, nil
}

// waitOver opens a stream over a connection of HTTP/2, and reads until nothing follows.
func (p *source) waitOver(ctx context.Context, transport *http.Transport) (io.Closer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+p.addr+p.path,
		bytes.NewReader(p.open(0, "")))
	if err != nil {
		return nil, err
	}
	req.Host = "localhost"
	req.Header.Set("Content-Type", "application/json")
	res, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if err := events(res.Body, p.last, func([]byte) {}); err != nil {
		return nil, fmt.Errorf("a stream did not begin: %w", err)
	}
	return res.Body, nil
}
