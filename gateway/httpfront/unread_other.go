// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package httpfront

import (
	"syscall"
	"time"
)

// limitUnread does nothing where the system cannot be asked to do it: the deadline of each write is all there is.
func limitUnread(syscall.RawConn, time.Duration) {}
