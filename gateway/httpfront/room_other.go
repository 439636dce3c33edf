// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package httpfront

import "syscall"

// sendRoom returns 0: the system does not say how much a socket takes without waiting.
func sendRoom(syscall.RawConn) int { return 0 }
