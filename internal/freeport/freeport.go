// SPDX-License-Identifier: Apache-2.0

// Package freeport finds TCP ports for servers started as processes by tests and measurements.
package freeport

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// The taken ports lie below the ones chosen by systems for connections, so no connection has taken a port when the
// server begins to listen. They are in blocks, and a process takes ports of its own blocks only, so no test of another
// process has them.
const (
	first  = 20_000
	blocks = 24
	block  = 500 // ports; a multiple of 10
	tries  = 1000
)

var (
	mu    sync.Mutex
	owned []int // the first ports of the blocks of this process
	taken = make(map[int]bool)
	locks *os.File // has a byte for each block, locked by the block's owner until it ends

	errNone = errors.New("freeport: there is no free port")
)

// Take returns a port of 127.0.0.1 with no process listening, and not taken before. It may be called by any number of
// goroutines at once.
func Take() (int, error) {
	return take(func(b int) (port int, ok bool) {
		port = b + rand.IntN(block)
		if ok = isFree(port); ok {
			taken[port] = true
		}
		return port, ok
	})
}

// TakeRow returns the digits of up to 9 such ports before their last one; the last one is 1 for the first of them.
func TakeRow(n int) (int, error) {
	return take(func(b int) (digits int, ok bool) {
		digits = b/10 + rand.IntN(block/10)
		for i := 1; i <= n; i++ {
			if !isFree(digits*10 + i) {
				return 0, false
			}
		}
		for i := 1; i <= n; i++ {
			taken[digits*10+i] = true
		}
		return digits, true
	})
}

// take calls try with blocks of this process until it takes something, and has the process own one more if it takes
// nothing of those.
func take(try func(block int) (int, bool)) (int, error) {
	mu.Lock()
	defer mu.Unlock()
	for {
		for _, b := range owned {
			for range tries {
				if got, ok := try(b); ok {
					return got, nil
				}
			}
		}
		if err := claim(); err != nil {
			return 0, err
		}
	}
}

// claim has this process own one block more, owned by no process of this user. The caller holds mu.
func claim() error {
	if locks == nil {
		name := filepath.Join(os.TempDir(), fmt.Sprint("aip-freeport-", os.Getuid()))
		file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return err
		}
		locks = file
	}
	for _, i := range rand.Perm(blocks) {
		b := first + i*block
		if slices.Contains(owned, b) { // its lock would be given once more
			continue
		}
		lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: int64(i), Len: 1}
		if syscall.FcntlFlock(locks.Fd(), syscall.F_SETLK, &lock) == nil {
			owned = append(owned, b)
			return nil
		}
	}
	return errNone
}

// isFree reports whether a port is not taken, and no process listens on it. The caller holds mu.
func isFree(port int) bool {
	if taken[port] {
		return false
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		l.Close()
	}
	return err == nil
}
