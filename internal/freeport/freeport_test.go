// SPDX-License-Identifier: Apache-2.0

package freeport

import (
	"net"
	"testing"
)

// TestTake takes ports, each of which is another one, and can be listened on.
func TestTake(t *testing.T) {
	seen := make(map[int]bool)
	for range 100 {
		port, err := Take()
		if err != nil {
			t.Fatal(err)
		}
		if seen[port] {
			t.Errorf("port %d is taken twice", port)
		}
		seen[port] = true
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err != nil {
			t.Error(err)
			continue
		}
		l.Close()
	}
}
