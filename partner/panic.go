// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"

	"github.com/aip-gateway/aip-gateway/task"
)

// errPanic marks the error of a bug in the gateway.
var errPanic = errors.New("partner: a panic")

// guard calls f, which calls an agent, and turns a panic into an error of kind Internal, so that a bug in a codec does
// not end other tasks. It logs the stack, but not the value of the panic, which may hold a payload.
func guard[T any](logger func() *slog.Logger, f func() (T, error)) (v T, err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		why := fmt.Sprintf("%T", p)
		if e, ok := p.(runtime.Error); ok {
			why = e.Error()
		}
		logger().Error("the gateway failed while it spoke with the agent; this is a bug of the gateway",
			"panic", why, "stack", string(debug.Stack()))
		err = task.Errorf(task.Internal,
			"the gateway failed while it spoke with the agent; the operator finds the reason in its log").WithCause(errPanic)
	}()
	return f()
}
