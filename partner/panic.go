// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"
	"log/slog"

	"github.com/aip-gateway/aip-gateway/internal/bug"
	"github.com/aip-gateway/aip-gateway/task"
)

// errPanic marks the error of a bug in the gateway.
var errPanic = errors.New("partner: a panic")

// guard calls f for a call of an agent, and turns a panic into an error of kind Internal: a bug in a codec does not end
// other tasks. The panic is logged in the trace of ctx.
func guard[T any](ctx context.Context, logger func() *slog.Logger, f func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			bug.Log(ctx, logger(),
				"the gateway failed while it spoke with the agent; this is a bug of the gateway", p)
			err = task.Errorf(task.Internal, "the gateway failed while it spoke with the agent; "+
				"the operator finds the reason in its log").WithCause(errPanic)
		}
	}()
	return f()
}
