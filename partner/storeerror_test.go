// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

func TestStoreError(t *testing.T) {
	for cause, want := range map[error]task.Error{
		replay.ErrUnavailable: {Kind: task.StoreUnavailable,
			Detail: "the gateway's store cannot be used now; try again later",
			Data:   map[string]any{"reason": "STORE_UNAVAILABLE"}},
		replay.ErrFenced: {Kind: task.StoreUnavailable,
			Detail: "another gateway works on this task now; send the request again",
			Data:   map[string]any{"reason": "STORE_UNAVAILABLE"}},
		replay.ErrFull: {Kind: task.LimitExceeded,
			Detail: "the gateway's store is full of unfinished tasks; finish or cancel some",
			Data:   map[string]any{"limit": "store"}},
		replay.ErrClosed: {Kind: task.Internal, Detail: "the gateway is stopping; try again"},
		io.EOF:           {Kind: task.Internal, Detail: "the task cannot be stored"},
	} {
		err := fmt.Errorf("wrapped: %w", cause)
		got := *StoreError(err, "the task cannot be stored")
		if !errors.Is(got.Err, cause) {
			t.Errorf("%v: the cause is lost", cause)
		}
		got.Err = nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", cause, diff)
		}
	}
}
