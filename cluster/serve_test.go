// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"testing"
	"time"
)

// parent counts the contexts made of it and not ended.
type parent struct {
	context.Context
	open int
}

func (*parent) Done() <-chan struct{} { return make(chan struct{}) }

// AfterFunc is called by package context for each context it makes.
func (p *parent) AfterFunc(func()) (stop func() bool) {
	p.open++
	return func() bool {
		p.open--
		return true
	}
}

// TestTimed: nothing is left of the context of an ended call, whether its time was limited or not.
func TestTimed(t *testing.T) {
	for _, limit := range []uint64{0, 1000} {
		p := &parent{Context: t.Context()}
		ctx, cancel := timed(p, &frame{limit: limit}, time.Second)
		if at, ok := ctx.Deadline(); ok != (limit > 0) || ok && time.Until(at) > 2*time.Second {
			t.Errorf("limit %d: the time is over at %v", limit, at)
		}
		if cancel(); p.open != 0 || ctx.Err() == nil {
			t.Errorf("limit %d: %d contexts are left", limit, p.open)
		}
	}
}
