// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
)

// TestReadsThatWait has more reads wait than there are readers, and closes other connections meanwhile.
func TestReadsThatWait(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var w watcher
	release := make(chan struct{})
	var reading atomic.Int32
	var read, gone sync.WaitGroup
	var watches []*watch
	// pair returns the caller's end of a watched connection.
	pair := func() net.Conn {
		t.Helper()
		caller, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { caller.Close() })
		served, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { served.Close() })
		socket, err := served.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		x, err := w.watchSocket(socket, gone.Done, func() {
			reading.Add(1)
			<-release
			read.Done()
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := x.arm(); err != nil {
			t.Fatal(err)
		}
		watches = append(watches, x)
		return caller
	}
	for range maxReaders + 10 {
		read.Add(1)
		if _, err := io.WriteString(pair(), "x"); err != nil {
			t.Fatal(err)
		}
	}
	asynctest.Eventually(t, "all readers read", func() bool { return reading.Load() == maxReaders })
	for range 10 {
		gone.Add(1)
		pair().Close()
	}
	gone.Wait()
	if n := reading.Load(); n != maxReaders {
		t.Errorf("%d reads were begun, want %d", n, maxReaders)
	}
	close(release)
	read.Wait()
	for _, x := range watches {
		x.remove()
	}
	if w.epoll != nil {
		t.Error("the descriptor is still open")
	}
	asynctest.Eventually(t, "no reader is left", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.readers == 0
	})
}
