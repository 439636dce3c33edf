// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
)

// attack is parties who take as much as they can get: a stranger, a Leader, an AID, an agent, and a member of a group.
type attack struct {
	fixture *fixture
	files   []devpki.File // of hostile Leaders that are not in use yet
	bad     *badAgent
	broker  *broker
	kinds   []*kind

	tokens sync.Mutex // guards token
	token  string     // of the hostile AID
}

// kind is one thing that an attacker does until its context ends.
type kind struct {
	name string
	act  func(ctx context.Context, t *tally)
	// forbidden says that nothing of it may be taken.
	forbidden bool
	// least is how often it is done in a minute, taken or refused: with less, the attack has shown nothing.
	least int
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

// hostileLeaders is how many hostile Leaders there are: one for each thing that Leaders do, since what a Leader uses up
// is its own share, which all else that it does would lack.
const hostileLeaders = 7

// culprit is a hostile Leader.
type culprit struct {
	*leader.Client
	file *devpki.File
}

// as returns an attack by the next of the hostile Leaders, on the Partner at a path.
func (a *attack) as(path string, act func(context.Context, *culprit, *tally)) func(context.Context, *tally) {
	file := &a.files[0]
	a.files = a.files[1:]
	return func(ctx context.Context, t *tally) {
		c, err := a.fixture.clientOf(path, file)
		if err != nil {
			t.note(err)
			return
		}
		defer c.Close()
		act(ctx, &culprit{c, file}, t)
	}
}

// newAttack prepares the attacks on what a fixture has. The caller must close it.
func newAttack(s *fixture) (_ *attack, err error) {
	a := &attack{fixture: s}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	if a.files, err = s.certificates("hostile", hostileLeaders); err != nil {
		return nil, err
	}
	if a.bad, err = newBadAgent(s); err != nil {
		return nil, err
	}
	if a.broker, err = newBroker(); err != nil {
		return nil, err
	}
	parties := []func(*attack) []*kind{hostileStranger, hostileLeader, hostileAID, hostileAgent, hostileMember}
	for _, party := range parties {
		a.kinds = append(a.kinds, party(a)...)
	}
	return a, nil
}

func (a *attack) close() {
	if a.bad != nil {
		a.bad.close()
	}
	if a.broker != nil {
		_ = a.broker.Close()
	}
}

// run attacks until ctx is done.
func (a *attack) run(ctx context.Context) {
	var group sync.WaitGroup
	for _, k := range a.kinds {
		group.Go(func() { k.act(ctx, &k.tally) })
	}
	group.Wait()
}

// runAttackers is the part of the attackers. They attack from the moment at which something comes from the standard
// input, until that ends, or something else comes; then they say what they have done.
func runAttackers(s *fixture, in *json.Decoder, out *json.Encoder) error {
	a, err := newAttack(s)
	if err != nil {
		return err
	}
	defer a.close()
	if err := out.Encode(true); err != nil {
		return err
	}
	if err := in.Decode(new(any)); err != nil {
		return nil // there is to be no attack
	}
	began := time.Now()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		_ = in.Decode(new(any)) // or its end
	}()
	a.run(ctx)
	return out.Encode(a.deeds(time.Since(began)))
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

// deed is what one kind of attack has done, as JSON.
type deed struct {
	Name           string
	Taken, Refused int
	Last           string // that something was refused with
	Least          int    // see kind.least
	Forbidden      bool
	Minutes        float64 // how long the attack was
}

func (a *attack) deeds(took time.Duration) (list []deed) {
	for _, k := range a.kinds {
		d := deed{Name: k.name, Taken: k.taken, Refused: k.refused, Least: k.least, Forbidden: k.forbidden,
			Minutes: took.Minutes()}
		if k.last != nil {
			d.Last = k.last.Error()
		}
		list = append(list, d)
	}
	return list
}

// perMinute is how often something was tried in a minute.
func (d *deed) perMinute() float64 { return float64(d.Taken+d.Refused) / d.Minutes }

// attackDuring lets the attackers attack until ctx is done, and returns what they have done.
func (p *part) attackDuring(ctx context.Context) (deeds []deed, err error) {
	if err := p.in.Encode(true); err != nil {
		return nil, err
	}
	<-ctx.Done()
	if err := p.in.Encode(false); err != nil {
		return nil, err
	}
	err = p.out.Decode(&deeds)
	return deeds, err
}

// printDeeds says what the attacks were.
func printDeeds(deeds []deed) {
	fmt.Printf("\n%-44s %10s %10s %10s  %s\n", "attacks", "a minute", "taken", "refused", "such as")
	for _, d := range deeds {
		fmt.Printf("%-44s %10.0f %10d %10d", d.Name, d.perMinute(), d.Taken, d.Refused)
		if d.Last != "" {
			fmt.Printf("  %.120q", d.Last)
		}
		fmt.Println()
	}
}

// judgeDeeds returns an error for each attack that has got what it must not get, and for each that was too weak: it has
// shown nothing.
func judgeDeeds(deeds []deed) error {
	var errs []error
	for _, d := range deeds {
		if d.perMinute() < float64(d.Least) {
			errs = append(errs, fmt.Errorf("the attack %q was made %.0f times a minute, which is less than %d",
				d.Name, d.perMinute(), d.Least))
		}
		if d.Forbidden && d.Taken > 0 {
			errs = append(errs, fmt.Errorf("the attack %q was taken %d times", d.Name, d.Taken))
		}
	}
	return errors.Join(errs...)
}
