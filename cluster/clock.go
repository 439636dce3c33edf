// SPDX-License-Identifier: Apache-2.0

package cluster

import "time"

// started has the time of the clock on the wall beside the clock that does not count suspension.
var started = time.Now()

// sinceStart returns the time since the start of the process, on systems without a clock known to count suspension: the
// longer one of the time the process has run, and the advance of the clock on the wall. The wall clock may be set; then
// leases end too early, as a rule.
func sinceStart() time.Duration {
	t := time.Now()
	return max(t.Sub(started), t.Round(0).Sub(started.Round(0)))
}
