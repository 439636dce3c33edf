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
)

// Take returns a port of 127.0.0.1 on which no process listens, and which it has not returned before. It may be called
// by any number of goroutines at once.
func Take() (int, error) {
	mu.Lock()
	defer mu.Unlock()
	for range 1000 {
		port := first + rand.IntN(count)
		if taken[port] {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		l.Close()
		taken[port] = true
		return port, nil
	}
	return 0, errors.New("freeport: there is no free port")
}
