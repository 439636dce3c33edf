// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/procs"
)

// TestProcessors: on a machine with few processors the gateway has more threads, unless the environment says how many.
func TestProcessors(t *testing.T) {
	t.Parallel()
	for environment, want := range map[string]int{
		"GOMAXPROCS=":  procs.Wanted(runtime.NumCPU(), runtime.NumCPU(), ""),
		"GOMAXPROCS=1": 1,
	} {
		s := newSite(t)
		s.env = []string{environment}
		s.start(config{handle: fmt.Sprintf("aip_gateway a2a/legacy http://127.0.0.1:%d", freePort(t))})
		if got := s.counted("go_sched_gomaxprocs_threads"); got != uint64(want) {
			t.Errorf("with %s the gateway has %d threads, want %d", environment, got, want)
		}
	}
}
