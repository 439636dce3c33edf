// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package httpfront

import (
	"syscall"
	"time"
)

// limitUnread does nothing: the system has no such option, and a connection has only the deadlines of its writes.
func limitUnread(syscall.RawConn, time.Duration) {}
