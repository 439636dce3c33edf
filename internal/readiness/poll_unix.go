// SPDX-License-Identifier: Apache-2.0

//go:build unix

package readiness

import "golang.org/x/sys/unix"

// Poll is unix.Poll without a wait. It asks again after EINTR: a signal, such as those of Go's runtime, says nothing of
// the descriptors.
func Poll(fds []unix.PollFd) (n int, err error) {
	for {
		if n, err = unix.Poll(fds, 0); err != unix.EINTR {
			return n, err
		}
	}
}
