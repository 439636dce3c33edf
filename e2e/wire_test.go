// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// wire is a TCP connection that breaks: a proxy in front of an agent or of the gateway.
type wire struct {
	net.Listener
	to string
	// breaks says what happens to the next connection.
	breaks func() damage

	mu    sync.Mutex
	conns map[net.Conn]bool
	done  sync.WaitGroup
}

// damage is what a wire does to what comes back over one connection.
type damage struct {
	after int           // cut after so many bytes; negative for never
	stall time.Duration // wait so long before the byte at which it would be cut
	split bool          // send every byte by itself
}

func newWire(t testing.TB, to string, breaks func() damage) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: l, to: to, breaks: breaks, conns: make(map[net.Conn]bool)}
	w.done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			w.done.Go(func() { w.carry(conn, breaks()) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		w.cut()
		w.done.Wait()
	})
	return w
}

func (w *wire) address() string { return w.Addr().String() }

// cut breaks all connections.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for conn := range w.conns {
		conn.Close()
	}
}

func (w *wire) add(conn net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[conn] = true
}

func (w *wire) remove(conn net.Conn) {
	conn.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, conn)
}

func (w *wire) carry(near net.Conn, d damage) {
	w.add(near)
	defer w.remove(near)
	far, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	w.add(far)
	defer w.remove(far)
	var up sync.WaitGroup
	up.Go(func() {
		io.Copy(far, near)
		far.(*net.TCPConn).CloseWrite()
	})
	defer up.Wait()
	defer near.Close()
	buf := make([]byte, 4<<10)
	for left := d.after; ; {
		n, err := far.Read(buf)
		part := buf[:n]
		if left >= 0 && n > left {
			part = part[:left]
		}
		for len(part) > 0 {
			size := len(part)
			if d.split {
				size = 1
			}
			if _, err := near.Write(part[:size]); err != nil {
				return
			}
			part = part[size:]
		}
		if left >= 0 {
			if left -= n; left <= 0 {
				if d.stall > 0 { // what the agent sends meanwhile is lost
					far.SetReadDeadline(time.Now().Add(d.stall))
					io.Copy(io.Discard, far)
				}
				return
			}
		}
		if err != nil {
			return
		}
	}
}
