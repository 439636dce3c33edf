// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/leader"
	"github.com/aip-gateway/aip-gateway/task"
)

// attack is parties who take as much as they can get: a stranger, a Leader, an AID, an agent, and a member of a group.
type attack struct {
	site   *site
	leader *leader.Client // of the hostile Leader
	ended  chan struct{}  // closed when all of it has ended

	kinds []*kind
}

// kind is one thing that an attacker does until its context ends.
type kind struct {
	name string
	act  func(ctx context.Context, t *tally)
	// forbidden says that nothing of it may be taken.
	forbidden bool
	tally
}

// tally counts what one kind of attack has done.
type tally struct {
	mu      sync.Mutex // guards what follows
	taken   int
	refused int
	last    error // that something was refused with
}

func (t *tally) note(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil:
		t.taken++
	case !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded): // the end of the attack
		t.refused++
		t.last = err
	}
}

// newAttack prepares the attacks on a site.
func newAttack(s *site) (*attack, error) {
	c, err := s.client(&s.pki.LeaderV1)
	if err != nil {
		return nil, err
	}
	a := &attack{site: s, leader: c, ended: make(chan struct{})}
	parties := []func(*attack) []*kind{hostileStranger, hostileLeader, hostileAID, hostileAgent, hostileMember}
	for _, party := range parties {
		a.kinds = append(a.kinds, party(a)...)
	}
	return a, nil
}

// run attacks until ctx is done.
func (a *attack) run(ctx context.Context) {
	defer close(a.ended)
	defer a.leader.Close()
	var group sync.WaitGroup
	for _, k := range a.kinds {
		group.Go(func() { k.act(ctx, &k.tally) })
	}
	group.Wait()
}

// each calls f so many times a second, until ctx is done.
func each(ctx context.Context, aSecond int, f func(n int)) {
	ticker := time.NewTicker(time.Second / time.Duration(aSecond))
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ticker.C:
			f(n)
		case <-ctx.Done():
			return
		}
	}
}

// atOnce calls f again and again from so many goroutines, with a pause between two calls of one, until ctx is done.
func atOnce(ctx context.Context, n int, pause time.Duration, f func(i, round int)) {
	var group sync.WaitGroup
	defer group.Wait()
	for i := range n {
		group.Go(func() {
			for round := 0; ctx.Err() == nil; round++ {
				f(i, round)
				wait(ctx, pause)
			}
		})
	}
}

func begin(id, text string) *task.Call {
	return &task.Call{Message: task.Message{Command: task.Start, TaskID: id, DataItems: []task.DataItem{task.Text(text)}}}
}

// print says what the attacks were.
func (a *attack) print() {
	fmt.Printf("\n%-44s %10s %10s  %s\n", "attacks", "taken", "refused", "such as")
	for _, k := range a.kinds {
		fmt.Printf("%-44s %10d %10d", k.name, k.taken, k.refused)
		if k.last != nil {
			fmt.Printf("  %.120q", k.last)
		}
		fmt.Println()
	}
}

// verdict returns an error for each attack that has got what it must not get, and for each that has done nothing: it
// has shown nothing either.
func (a *attack) verdict() error {
	var errs []error
	for _, k := range a.kinds {
		if k.taken+k.refused == 0 {
			errs = append(errs, fmt.Errorf("the attack %q did nothing", k.name))
		}
		if k.forbidden && k.taken > 0 {
			errs = append(errs, fmt.Errorf("the attack %q was taken %d times", k.name, k.taken))
		}
	}
	return errors.Join(errs...)
}
