// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/aip-gateway/aip-gateway/internal/readiness"
)

// sendSpace returns the least free space of a socket's buffer; 0 if it is unknown. A writable socket has a third of its
// buffer free (sk_stream_is_writeable in Linux).
func sendSpace(socket syscall.RawConn) (space int) {
	_ = socket.Control(func(fd uintptr) {
		poll := [...]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		if n, err := readiness.Poll(poll[:]); n != 1 || err != nil || poll[0].Revents != unix.POLLOUT {
			return
		}
		if size, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF); err == nil {
			space = min(size/3, maxUnsent/2)
		}
	})
	return space
}
