// SPDX-License-Identifier: Apache-2.0

package site

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Wire is a TCP connection that breaks: a proxy in front of an agent or of the gateway.
type Wire struct {
	net.Listener
	to string
	// breaks says what happens to the next connection.
	breaks func() Damage

	mu     sync.Mutex
	conns  map[*wireEnd]bool
	losing bool // new connections lose what is sent
	done   sync.WaitGroup
}

// wireEnd is one end of a connection over a wire.
type wireEnd struct {
	net.Conn
	lost *atomic.Bool // of the connection: what is sent to either end is lost
}

// Write sends, or loses.
func (e *wireEnd) Write(p []byte) (int, error) {
	if e.lost.Load() {
		return len(p), nil
	}
	return e.Conn.Write(p)
}

// Damage is what a wire does to what comes back over one connection.
type Damage struct {
	After int           // cut after so many bytes; negative for never
	Stall time.Duration // wait so long before the byte at which it would be cut
	Split bool          // send every byte by itself
}

// NewWire returns a wire to an address, until the end of the test. breaks is asked for each connection.
func NewWire(t testing.TB, to string, breaks func() Damage) *Wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{Listener: l, to: to, breaks: breaks, conns: make(map[*wireEnd]bool)}
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
		w.Cut()
		w.done.Wait()
	})
	return w
}

// Address returns the address of the wire's near end.
func (w *Wire) Address() string { return w.Addr().String() }

// Cut breaks all connections.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for conn := range w.conns {
		conn.Close()
	}
}

// Lose has all connections lose what is sent over them from now on, in both directions, as a network does that drops
// packets: neither end learns of it, nor that the other one closes. Connections that begin before Deliver lose
// everything.
func (w *Wire) Lose() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.losing = true
	for end := range w.conns {
		end.lost.Store(true)
	}
}

// Deliver ends Lose for connections that begin from now on.
func (w *Wire) Deliver() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.losing = false
}

func (w *Wire) add(conn net.Conn, lost *atomic.Bool) *wireEnd {
	w.mu.Lock()
	defer w.mu.Unlock()
	end := &wireEnd{conn, lost}
	if w.losing {
		lost.Store(true)
	}
	w.conns[end] = true
	return end
}

func (w *Wire) remove(end *wireEnd) {
	end.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, end)
}

func (w *Wire) carry(caller net.Conn, d Damage) {
	var lost atomic.Bool
	near := w.add(caller, &lost)
	defer w.remove(near)
	called, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	far := w.add(called, &lost)
	defer w.remove(far)
	var up sync.WaitGroup
	up.Go(func() {
		io.Copy(far, near)
		if !lost.Load() {
			called.(*net.TCPConn).CloseWrite()
		}
	})
	defer up.Wait()
	defer func() {
		if !lost.Load() {
			near.Close()
		}
	}()
	buf := make([]byte, 4<<10)
	for left := d.After; ; {
		n, err := far.Read(buf)
		part := buf[:n]
		if left >= 0 && n > left {
			part = part[:left]
		}
		for len(part) > 0 {
			size := len(part)
			if d.Split {
				size = 1
			}
			if _, err := near.Write(part[:size]); err != nil {
				return
			}
			part = part[size:]
		}
		if left >= 0 {
			if left -= n; left <= 0 {
				if d.Stall > 0 { // what the agent sends meanwhile is lost
					far.SetReadDeadline(time.Now().Add(d.Stall))
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
