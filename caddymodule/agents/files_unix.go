// SPDX-License-Identifier: Apache-2.0

//go:build unix

package agents

import (
	"math"
	"syscall"
)

// maxFiles returns how many files the process may have open, connections among them.
func maxFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1024
	}
	return int(min(uint64(limit.Cur), math.MaxInt32))
}
