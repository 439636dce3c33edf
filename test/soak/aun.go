// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
)

// The names of AUN.
const (
	aunIssuer  = "aid.test"
	aunGateway = "gateway." + aunIssuer
	aunAgent   = "agent." + aunIssuer
)

// Who connects from where. Logins are limited for an address, too.
const (
	honestAddress   = "127.0.0.2"
	strangerAddress = "127.0.0.3"
	hostileAddress  = "127.0.0.4"
)

// honestEvery is how often the honest AID logs in and has a task.
const honestEvery = 5 * time.Second

// runHonestAID logs in again and again, creates a task and reads its result. Each must succeed.
func (l *leaders) runHonestAID(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		if err := l.site.honestTask(ctx, fmt.Sprint("hello ", n)); err != nil && ctx.Err() == nil && !l.full.Load() {
			l.complain("the honest AID: %v", err)
		}
		l.aidTasks.Add(1)
		wait(ctx, honestEvery)
	}
}

func (s *site) honestTask(ctx context.Context, text string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := s.aun(s.honestAID, honestAddress)
	defer c.HTTP.CloseIdleConnections()
	conn, err := c.Online(ctx)
	for again := 0; isReset(err) && again < 3; again++ { // by a reload, before the connection was accepted
		wait(ctx, 100*time.Millisecond)
		conn, err = c.Online(ctx)
	}
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	defer conn.Cut()
	t, err := conn.Create(ctx, aunAgent, text)
	if err != nil {
		return fmt.Errorf("task.create: %w", err)
	}
	for { // the answer to task.create has no artifacts, even if the task has completed by then
		if t, err = conn.Do(ctx, "task.get", map[string]any{"task_id": t.TaskID}); err != nil {
			return fmt.Errorf("task.get: %w", err)
		}
		if aunpeer.Ended(t.Status) {
			break
		}
		wait(ctx, 50*time.Millisecond)
	}
	if t.Status != "completed" {
		return fmt.Errorf("the task is %s: %s", t.Status, t.Reason)
	}
	if len(t.Artifacts) != 1 {
		return fmt.Errorf("the task has %d artifacts", len(t.Artifacts))
	}
	return nil
}

// isReset reports whether a connection was closed before anything was answered on it.
func isReset(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) }
