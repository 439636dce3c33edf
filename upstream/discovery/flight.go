// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/aip-gateway/aip-gateway/upstream"
)

// flight is one call with any number of goroutines waiting for its result. It ends with none of them: its owner, a Card
// or a Resolver, lets callers join it, and stops it.
type flight[T any] struct {
	waiting int // waiting callers; guarded by the owner's mutex

	cancel context.CancelFunc
	done   chan struct{} // closed once result and err are set
	result T
	err    error
}

// startFlight calls f in a goroutine of its own, and then ended, before the result is handed to the waiting callers. A
// panic of f is raised again in each of these callers.
func startFlight[T any](f func(context.Context) (T, error), ended func(*flight[T])) *flight[T] {
	ctx, cancel := context.WithCancel(context.Background())
	fl := &flight[T]{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(fl.done)
		defer cancel()
		defer func() {
			if p := recover(); p != nil {
				fl.err = &callPanic{p, debug.Stack()}
			}
			ended(fl)
		}()
		fl.result, fl.err = f(ctx)
	}()
	return fl
}

// wait waits for the result for as long as ctx allows.
func (fl *flight[T]) wait(ctx context.Context) (T, error) {
	select {
	case <-fl.done:
	case <-ctx.Done():
		var none T
		return none, upstream.Ended(ctx)
	}
	if p, ok := fl.err.(*callPanic); ok {
		panic(p)
	}
	return fl.result, fl.err
}

// stop ends the call and waits for it.
func (fl *flight[T]) stop() {
	fl.cancel()
	<-fl.done
}

// callPanic is a panic of a call, for the waiting goroutines.
type callPanic struct {
	value any
	stack []byte
}

// Error implements runtime.Error.
func (p *callPanic) Error() string {
	return fmt.Sprintf("%T while finding out about the agent\n%s", p.value, p.stack)
}

// RuntimeError implements runtime.Error.
func (p *callPanic) RuntimeError() {}
