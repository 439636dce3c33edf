// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"
)

// How long the disk is full, and how long what follows from it may be felt: the store tries again after up to 30 s.
const (
	fullFor   = 5 * time.Second
	fullAfter = 5 * time.Second
)

// reloadEvery is how often the configuration is replaced.
const reloadEvery = 10 * time.Second

// disturb replaces the configuration again and again, and fills the disk twice in a run, and every four minutes of a
// long one.
func (s *site) disturb(ctx context.Context, d time.Duration, l *leaders) {
	reload := time.NewTicker(reloadEvery)
	defer reload.Stop()
	full := time.NewTicker(min(max(d/3, 2*(fullFor+fullAfter)), 4*time.Minute))
	defer full.Stop()
	for {
		select {
		case <-reload.C:
			if err := s.reload(ctx); err != nil && ctx.Err() == nil {
				l.complain("reload: %v", err)
			}
		case <-full.C:
			s.fillDisk(ctx, l)
		case <-ctx.Done():
			return
		}
	}
}

// fillDisk fills the disk for a while.
func (s *site) fillDisk(ctx context.Context, l *leaders) {
	l.full.Store(true)
	defer l.full.Store(false)
	if err := fillDisk(s.gateway.Process.Pid, true); err != nil {
		l.complain("the disk cannot be filled: %v", err)
		return
	}
	wait(ctx, fullFor)
	if err := fillDisk(s.gateway.Process.Pid, false); err != nil {
		l.complain("the disk cannot be emptied: %v", err)
	}
	wait(ctx, fullAfter)
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
