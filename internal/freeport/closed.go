// SPDX-License-Identifier: Apache-2.0

package freeport

import (
	"errors"
	"net"
	"testing"
)

// Closed returns a port of 127.0.0.1 that refuses connections until the test ends. Meanwhile no process can listen
// there, also none of other tests: a connection of this one comes from there.
func Closed(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(errors.Join(err, l.Close()))
	}
	t.Cleanup(func() {
		if err := errors.Join(conn.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	})
	return conn.LocalAddr().(*net.TCPAddr).Port
}
