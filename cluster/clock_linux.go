// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"golang.org/x/sys/unix"
)

// now returns the time since the machine was started. It counts the time of suspension.
func now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return sinceStart()
	}
	return time.Duration(t.Nano())
}
