// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// take answers with a stream on a taken over connection.
func (h *looped) take(w http.ResponseWriter, r *http.Request, taken chan<- *Conn) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		h.t.Error(err)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.(http.Flusher).Flush()
	socket, _ := r.Context().Value(socketKey{}).(syscall.RawConn)
	c, err := Take(w, r, Options{
		Socket: socket, Passes: knownToHost, Gone: func() {}, Timeout: time.Minute,
	})
	if err != nil {
		h.t.Error(err)
	}
	taken <- c
}

// knownToHost reports whether a host may know a writer: the one of a loop is this package's own.
func knownToHost(w http.ResponseWriter) bool {
	_, own := w.(*response)
	return !own
}

// TestLoopTaken has a stream begun in a loop taken over, or one on a connection given back by a loop; then its
// connection is given back.
func TestLoopTaken(t *testing.T) {
	const chunked = "POST /first HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
	for name, sent := range map[string]string{
		"plain": firstRequest, "TLS": firstRequest, "plain, given back": chunked, "TLS, given back": chunked,
	} {
		t.Run(name, func(t *testing.T) {
			way, _, _ := strings.Cut(name, ",")
			start := ways[way]
			h := serveLoops(t, start, nil)
			taken := make(chan *Conn, 1)
			h.serve = func(w http.ResponseWriter, r *http.Request) { h.take(w, r, taken) }
			c := h.dial()
			c.send(sent)
			s := <-taken
			if s == nil {
				return
			}
			if _, err := io.WriteString(s, "an event"); err != nil {
				t.Error(err)
			}
			s.End(true, true)
			if _, body := c.receive(); body != "an event" {
				t.Errorf("the stream is %q", body)
			}
			c.call("ok")
		})
	}
}

// corked is a connection with writes sent together.
type corked struct {
	net.Conn
	on   bool
	held []byte
}

func (c *corked) Write(p []byte) (int, error) {
	if !c.on {
		return c.Conn.Write(p)
	}
	c.held = append(c.held, p...)
	return len(p), nil
}

// TestLoopTakenPipelined: over TLS, a call beside the one before it, in a record of its own, is answered if the first
// is a stream, or the connection is closed behind the stream.
func TestLoopTakenPipelined(t *testing.T) {
	h := serveLoops(t, secure, nil)
	taken := make(chan *Conn, 1)
	h.serve = func(w http.ResponseWriter, r *http.Request) { h.take(w, r, taken) }
	plain, err := net.Dial("tcp", h.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	cork := &corked{Conn: plain}
	secure := tls.Client(cork, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{certificate()}})
	c := &caller{secure, bufio.NewReader(secure), t}
	c.call("ok")
	cork.on = true
	c.send(firstRequest)
	c.send(firstRequest)
	if _, err := plain.Write(cork.held); err != nil {
		t.Fatal(err)
	}
	cork.on = false
	s := <-taken
	s.End(true, true)
	if _, body := c.receive(); body != "" {
		t.Errorf("the stream is %q", body)
	}
	if err := plain.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil { // for a failure
		t.Fatal(err)
	}
	if _, err := c.in.ReadByte(); err != io.EOF {
		t.Errorf("the second call waits: %v", err)
	}
}
