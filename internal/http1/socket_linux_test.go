// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"net"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestQuietUnderSignals: a connection stays quiet though signals interrupt the look at it.
func TestQuietUnderSignals(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var s socket
	s.init(conn)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread, over, ended := unix.Gettid(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-over:
				return
			default:
				_ = unix.Tgkill(os.Getpid(), thread, unix.SIGURG) // the signal of Go's runtime
			}
		}
	}()
	for range 5000 {
		if !s.quiet() {
			t.Errorf("the connection is not quiet: %d, %v", s.n, s.err)
			break
		}
	}
	close(over)
	<-ended
}
