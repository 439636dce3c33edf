// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"testing"
	"time"
)

// parent counts the contexts that were made of it and have not ended.
type parent struct {
	context.Context
	open int
}

func (*parent) Done() <-chan struct{} { return make(chan struct{}) }

// AfterFunc is what package context calls for each context that it makes.
func (p *parent) AfterFunc(func()) (stop func() bool) {
	p.open++
	return func() bool {
		p.open--
		return true
	}
}

// TestTimed: nothing is left of the context of a call that has ended, whether its time was limited or not.
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
