// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// starts measures the start of the process with many stored tasks: from its beginning to the first answer of a get.
// First it is killed, then it is asked to end.
func starts(ctx context.Context, o settings) error {
	s, err := newSite(ctx, o.caddy, siteConfig{fill: filling(ctx, o.tasks)})
	if err != nil {
		return err
	}
	defer s.close()
	get := getOne(s, o.tasks)
	var killed, ended []float64
	for range o.rounds {
		s.stop()
		took, err := s.firstAnswer(ctx, get)
		if err != nil {
			return err
		}
		killed = append(killed, took)
		if err := s.end(); err != nil {
			return err
		}
		if took, err = s.firstAnswer(ctx, get); err != nil {
			return err
		}
		ended = append(ended, took)
	}
	t := o.table(fmt.Sprintf("start with %d stored tasks: first answer, in ms", o.tasks), "median", "least", "greatest")
	t.row("after a kill", spread(killed)...)
	t.row("after a stop", spread(ended)...)
	return nil
}

// firstAnswer starts the process, and returns after how many milliseconds it has answered.
func (s *site) firstAnswer(ctx context.Context, get target) (float64, error) {
	began := time.Now()
	if err := s.restart(ctx); err != nil {
		return 0, err
	}
	for ctx.Err() == nil {
		conn, err := net.Dial("tcp", get.addr)
		if err != nil {
			if time.Since(began) > 30*time.Second {
				return 0, err
			}
			time.Sleep(time.Millisecond)
			continue
		}
		body := get.body(nil, numbers.Add(1))
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
			"Connection: close\r\nContent-Length: %d\r\n\r\n%s", get.path, len(body), body)
		answer, failed := io.ReadAll(conn)
		took := time.Since(began)
		if err := errors.Join(err, failed, conn.Close()); err != nil {
			return 0, err
		}
		return micros(took) / 1e3, get.check(answer, numbers.Load())
	}
	return 0, ctx.Err()
}
