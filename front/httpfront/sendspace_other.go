// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package httpfront

import "syscall"

// sendSpace returns 0: the system does not tell the number of bytes a socket takes without waiting.
func sendSpace(syscall.RawConn) int { return 0 }
