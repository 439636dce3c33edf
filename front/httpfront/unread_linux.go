// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxUnsent is the number of bytes buffered by the system beyond those it may send now. It is small: writes soon block
// for a slow caller, and slow callers take little memory of the system.
const maxUnsent = 128 << 10

// limitUnread makes the system close a connection if the other end acknowledges nothing for a time: it is gone, or its
// window is closed. Zero takes it back. Errors are ignored: a socket other than TCP lacks the option, and has only the
// deadlines of its writes.
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
