// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestReplacedPartner: a command for a Partner replaced by a reload is carried out by the new one.
func TestReplacedPartner(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		replaced, inForce := answers("old"), answers("new")
		b := setUp(t, memory(t), replaced)
		b.do(call(task.Start, "t1"))
		config := b.Config
		config.Agent = inForce
		defer b.engine.Register(config).Unregister()
		b.do(call(task.Start, "t2")) // both are registered
		b.Unregister()
		b.do(call(task.Start, "t3"))
		b.do(call(task.Continue, "t1"))
		if diff := cmp.Diff([]int{2, 2}, []int{replaced.turnCount(), inForce.turnCount()}); diff != "" {
			t.Errorf("turns of the replaced agent, and of the one in force (-want +got):\n%s", diff)
		}
	})
}
