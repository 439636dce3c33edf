// SPDX-License-Identifier: Apache-2.0

package freeport

import (
	"net"
	"testing"
)

// TestTake takes ports, also in rows. Each is another one, and can be listened on.
func TestTake(t *testing.T) {
	var ports []int
	for range 100 {
		port, err := Take()
		if err != nil {
			t.Fatal(err)
		}
		digits, err := TakeRow(9)
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, port)
		for i := 1; i <= 9; i++ {
			ports = append(ports, digits*10+i)
		}
	}
	seen := make(map[int]bool)
	for _, port := range ports {
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
