// SPDX-License-Identifier: Apache-2.0

package main

import (
	"syscall"
	"time"
)

// ownCPU returns the time that this process has computed.
func ownCPU() (time.Duration, error) {
	var created, exited, kernel, user syscall.Filetime // in units of 100 ns
	self, err := syscall.GetCurrentProcess()
	if err != nil {
		return 0, err
	}
	if err := syscall.GetProcessTimes(self, &created, &exited, &kernel, &user); err != nil {
		return 0, err
	}
	return span(kernel) + span(user), nil
}

// span returns a Filetime that is a length of time. Filetime.Nanoseconds is for moments.
func span(f syscall.Filetime) time.Duration {
	return time.Duration(int64(f.HighDateTime)<<32|int64(f.LowDateTime)) * 100
}
