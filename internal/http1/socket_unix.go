// SPDX-License-Identifier: Apache-2.0

//go:build unix

package http1

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/aip-gateway/aip-gateway/internal/readiness"
)

// socket asks the system about a connection.
type socket struct {
	raw  syscall.RawConn // nil where the connection is no socket
	poll func(fd uintptr)
	fds  [1]unix.PollFd
	n    int
	err  error
}

func (s *socket) init(conn net.Conn) {
	if c, ok := conn.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			s.raw, s.poll = raw, s.pollOnce
		}
	}
}

func (s *socket) pollOnce(fd uintptr) {
	s.fds[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	s.n, s.err = readiness.Poll(s.fds[:])
}

// known reports whether the system can be asked.
func (s *socket) known() bool { return s.raw != nil }

// quiet reports whether there is nothing to read: neither bytes, nor an end, nor an error.
func (s *socket) quiet() bool { return s.raw.Control(s.poll) == nil && s.n == 0 && s.err == nil }

// writeSome writes what the system takes at once, and returns its number of bytes.
func (s *socket) writeSome(p []byte) (n int) {
	if s.raw == nil {
		return 0
	}
	_ = s.raw.Write(func(fd uintptr) bool {
		n, _ = unix.Write(int(fd), p)
		return true
	})
	return max(n, 0) // an error is met again by the next write
}
