// SPDX-License-Identifier: Apache-2.0

package cluster

import "time"

// started has the time of the clock on the wall beside that which does not count suspension.
var started = time.Now()

// sinceStart returns for how long the process runs, where no clock is known to count suspension: the longer one of the
// time that the process has run, and what the clock on the wall has advanced. That clock may be set; then leases end
// too early, as a rule.
func sinceStart() time.Duration {
	t := time.Now()
	return max(t.Sub(started), t.Round(0).Sub(started.Round(0)))
}
