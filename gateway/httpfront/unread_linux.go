// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxUnsent is how many bytes the system buffers beyond what it may send now, so that a write feels early that a caller
// reads slowly, and slow callers cost the system little memory.
const maxUnsent = 128 << 10

// limitUnread has the system close a connection when nothing of what waits for its other end is acknowledged for a
// time, be it that the other end is gone or that its window is closed. Zero takes that back. Errors are ignored: a
// socket that is not TCP has no such option, and then the deadline of each write is all there is.
func limitUnread(socket syscall.RawConn, timeout time.Duration) {
	unsent := maxUnsent
	if timeout == 0 {
		unsent = 0 // the system's default
	}
	_ = socket.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(timeout.Milliseconds()))
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent)
	})
}
