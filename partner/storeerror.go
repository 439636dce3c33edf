// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"errors"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// StoreError returns the error of a caller for an error of the store. detail is its sentence if the error is neither
// transient nor a limit.
func StoreError(err error, detail string) *task.Error {
	switch {
	case errors.Is(err, replay.ErrUnavailable):
		return task.Errorf(task.StoreUnavailable, "the gateway's store cannot be used now; try again later").
			WithData("reason", "STORE_UNAVAILABLE").WithCause(err)
	case errors.Is(err, replay.ErrFull):
		return task.Errorf(task.LimitExceeded,
			"the gateway's store is full of unfinished tasks; finish or cancel some").
			WithData("limit", "store").WithCause(err)
	case errors.Is(err, replay.ErrConflict): // again and again: see replay.RetryConflict
		return task.Errorf(task.LimitExceeded,
			"others have changed the task each time that this was about to be stored; try again").
			WithData("limit", "conflicts").WithCause(err)
	case errors.Is(err, replay.ErrFenced):
		return Moved()
	case errors.Is(err, replay.ErrClosed):
		return task.Errorf(task.Internal, "the gateway is stopping; try again").WithCause(err)
	}
	return task.Errorf(task.Internal, "%s", detail).WithCause(err)
}

// Moved returns the error of a call to a process that does not own the shard of the task, or does no longer. It is a
// replay.ErrFenced, and the call can be sent again at once.
func Moved() *task.Error {
	return task.Errorf(task.StoreUnavailable, "another gateway works on this task now; send the request again").
		WithData("reason", "STORE_UNAVAILABLE").WithCause(replay.ErrFenced)
}
