// SPDX-License-Identifier: Apache-2.0

// Package freeport finds TCP ports for the servers that tests and measurements start as processes.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// The ports that are taken lie below the ones that systems choose for connections, so that no connection has taken a
// port when the server begins to listen.
const (
	first = 20_000
	count = 12_000
)

var (
	mu    sync.Mutex
	taken = make(map[int]bool)

	errNone = errors.New("freeport: there is no free port")
)

// Take returns a port of 127.0.0.1 on which no process listens, and which was not taken before. It may be called by any
// number of goroutines at once.
func Take() (int, error) {
	mu.Lock()
	defer mu.Unlock()
	for range 1000 {
		if port := first + rand.IntN(count); isFree(port) {
			taken[port] = true
			return port, nil
		}
	}
	return 0, errNone
}

// TakeRow returns the digits that up to 9 such ports have before their last one, which is 1 for the first of them.
func TakeRow(n int) (int, error) {
	mu.Lock()
	defer mu.Unlock()
next:
	for range 1000 {
		digits := (first + rand.IntN(count)) / 10
		for i := 1; i <= n; i++ {
			if !isFree(digits*10 + i) {
				continue next
			}
		}
		for i := 1; i <= n; i++ {
			taken[digits*10+i] = true
		}
		return digits, nil
	}
	return 0, errNone
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
