// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"errors"
	"net"
	"os"
	"time"
)

// watch reads from a connection while it is idle, to see whether it stays open and quiet. It is for connections unknown
// to the system, and costs a goroutine.
type watch struct {
	conn  net.Conn
	done  chan struct{} // closed when the goroutine has ended; nil if there was none
	quiet bool
}

// begin begins to watch. The watch ends with end, or when the connection is closed.
func (w *watch) begin() {
	w.conn.SetReadDeadline(time.Time{})
	w.done = make(chan struct{})
	go func() {
		defer close(w.done)
		var b [1]byte
		n, err := w.conn.Read(b[:])
		w.quiet = n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
	}()
}

// end ends watching, and reports whether the connection has stayed open and quiet. The deadline of its reads has passed
// then.
func (w *watch) end() bool {
	w.conn.SetReadDeadline(past)
	w.wait()
	return w.quiet
}

// wait waits for the end of the goroutine.
func (w *watch) wait() {
	if w.done != nil {
		<-w.done
	}
}
