// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"
)

// steadyConns is how many connections share a steady rate.
const steadyConns = 64

// latencies measures how long calls take that come at a steady rate: straight to the agent, through reverse_proxy, and
// through the gateway. What the gateway does beside copying, the store's fsync above all, is in its time.
func latencies(ctx context.Context, o settings) error {
	s, err := newSite(ctx, o.caddy, siteConfig{})
	if err != nil {
		return err
	}
	defer s.close()
	for _, c := range []struct{ kib, rate int }{{1, 1000}, {1, 3000}, {16, 1000}, {16, 3000}} {
		var ways []way
		for _, t := range []target{
			a2aSend(s, plain, "the agent alone", portAgent), a2aSend(s, plain, "reverse_proxy", portProxy), aipStart(s, plain),
		} {
			ways = append(ways, way{target: padded(t, c.kib<<10), process: s.gateway, rate: c.rate})
		}
		rounds, err := inTurns(ctx, o, steadyConns, ways...)
		if err != nil {
			return err
		}
		t := o.table(fmt.Sprintf("calls of %d KiB, %d a second", c.kib, c.rate),
			"per s", "p50 µs", "p99 µs", "p50 more", "p99 more")
		alone := summary(rounds[0])
		for i, w := range ways {
			values := summary(rounds[i])[:3]
			if i > 0 {
				values = append(values, values[1]-alone[1], values[2]-alone[2])
			}
			t.row(w.target.name, values...)
		}
	}
	return nil
}

// padded is a target whose requests and answers have a text of size bytes.
func padded(t target, size int) target {
	body, said := t.body, []byte("hello there")
	padding := []byte(strings.Repeat("lorem ", size/6) + string(said))
	t.body = func(dst []byte, n int64) []byte {
		return append(dst, bytes.Replace(body(nil, n), said, padding, 1)...)
	}
	return t
}

// steady sends so many requests a second over so many connections, for so long. A request that has to wait for the
// answer to the one before counts from when it was due.
func steady(ctx context.Context, t target, callers, rate int, d time.Duration) (result, error) {
	every := time.Duration(callers) * time.Second / time.Duration(rate)
	began := time.Now()
	var all []func() ([]time.Duration, error)
	for i := range callers {
		first := began.Add(every * time.Duration(i) / time.Duration(callers))
		all = append(all, func() ([]time.Duration, error) { return t.callSteadily(ctx, first, began.Add(d), every) })
	}
	return gather(all)
}

// callSteadily sends a request every so often over one connection, from one moment to another.
func (t *target) callSteadily(ctx context.Context, from, to time.Time, every time.Duration) ([]time.Duration, error) {
	conn, err := t.dial()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	c := connection{target: t, conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}
	var all []time.Duration
	for due := from; due.Before(to) && ctx.Err() == nil; due = due.Add(every) {
		late := time.Since(due)
		if late < 0 {
			time.Sleep(-late)
			late = 0 // what the timer adds is the generator's own
		}
		took, err := c.call()
		if err != nil {
			return all, err
		}
		all = append(all, late+took)
	}
	return all, ctx.Err()
}
