// SPDX-License-Identifier: Apache-2.0

package group

import (
	"context"
	"errors"

	"github.com/aip-gateway/aip-gateway/internal/bug"
)

// errPanic is the error of a bug in the gateway.
var errPanic = errors.New("group: a panic")

// guard calls f, and turns a panic into errPanic, so that a message meeting a bug does not end the process, again and
// again. The panic is logged in the trace of ctx.
func (t *groupTasks) guard(ctx context.Context, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			bug.Log(ctx, t.logger(),
				"the gateway failed while it handled a message of a group; this is a bug of the gateway", p)
			err = errPanic
		}
	}()
	return f()
}
