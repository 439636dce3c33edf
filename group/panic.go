// SPDX-License-Identifier: Apache-2.0

package group

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
)

// errPanic says that the gateway has a bug.
var errPanic = errors.New("group: a panic")

// guard calls f, and turns a panic into errPanic, so that a message which meets a bug does not end the process, again
// and again. It logs the stack, but not the value of the panic, which may hold a payload.
func (t *groupTasks) guard(f func() error) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		why := fmt.Sprintf("%T", p)
		if e, ok := p.(runtime.Error); ok {
			why = e.Error()
		}
		t.logger().Error("the gateway failed with a message of a group; this is a bug of the gateway",
			"panic", why, "stack", string(debug.Stack()))
		err = errPanic
	}()
	return f()
}
