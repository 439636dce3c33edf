// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/task"
)

// notice is one notification that a sink was sent.
type notice struct {
	path   string
	id     string // its webhook-id
	header http.Header
	body   []byte
	task   task.Task
	at     time.Time // when it had arrived
	taken  bool      // it is answered with success
}

// stamp is a state of a task and when it was entered, which is different for every change of a task.
type stamp struct {
	State task.State
	At    time.Time
}

func stamps(history []task.Status) []stamp {
	var out []stamp
	for i := range history {
		out = append(out, stamp{history[i].State, history[i].ChangedAt})
	}
	return out
}

// response is what becomes of a notification that has arrived.
type response struct {
	taken bool
	write func(net.Conn) (goesOn bool) // the connection serves the next request
}

// sink is a receiver of notifications, down to TCP: whether it is there, and what it answers, is up to the test.
type sink struct {
	t       testing.TB
	address string
	tls     *tls.Config
	work    sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil while it is down
	conns    map[net.Conn]bool
	answer   func(*notice) response
	got      []notice
}

// newSink returns a sink that is up and takes everything.
func newSink(t testing.TB) *sink {
	t.Helper()
	return newTLSSink(t, nil)
}

func newTLSSink(t testing.TB, config *tls.Config) *sink {
	t.Helper()
	s := &sink{t: t, address: fmt.Sprintf("127.0.0.1:%d", freePort(t)), tls: config, conns: make(map[net.Conn]bool)}
	s.answers(always(taken()))
	s.up()
	t.Cleanup(s.down)
	return s
}

func (s *sink) origin() string { return "http://" + s.address }

// up lets the sink listen.
func (s *sink) up() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		return
	}
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.listener = l
	s.work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			there := s.listener == l
			s.conns[conn] = there
			if there {
				s.work.Go(func() { s.serve(conn) })
			}
			s.mu.Unlock()
			if !there {
				conn.Close()
			}
		}
	})
}

// down closes the sink's port and all its connections, and waits until nothing more can arrive.
func (s *sink) down() {
	s.mu.Lock()
	if s.listener != nil {
		s.listener.Close()
		s.listener = nil
	}
	for conn := range s.conns {
		conn.Close()
	}
	clear(s.conns)
	s.mu.Unlock()
	s.work.Wait()
}

// answers sets what notifications are answered from now on. answer is called by one goroutine at a time.
func (s *sink) answers(answer func(*notice) response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *sink) serve(raw net.Conn) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, raw)
		raw.Close()
	}()
	conn := raw
	if s.tls != nil {
		conn = tls.Server(raw, s.tls)
	}
	r := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // broken off by a gateway that was killed
		}
		n := notice{
			path:   req.URL.RequestURI(),
			id:     req.Header.Get("webhook-id"),
			header: req.Header,
			body:   body,
			at:     time.Now(),
		}
		if req.Method != http.MethodPost || json.Unmarshal(body, &n.task) != nil {
			s.t.Errorf("the sink was sent %s %s with %.200q", req.Method, n.path, body)
		}
		s.mu.Lock()
		out := s.answer(&n)
		n.taken = out.taken
		s.got = append(s.got, n)
		s.mu.Unlock()
		if !out.write(conn) {
			return
		}
	}
}

// arrived returns what has arrived at a path, in order; at all paths where that is "".
func (s *sink) arrived(path string) []notice {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []notice
	for _, n := range s.got {
		if path == "" || n.path == path {
			out = append(out, n)
		}
	}
	return out
}

// changes returns the changes of which a path was notified, by the first notification of each that it has accepted. It
// fails the
// test where two notifications of a change have different ids or bodies, or two of one id are about different changes.
func (s *sink) changes(path string) []stamp {
	s.t.Helper()
	var out []stamp
	byID, byStamp, have := make(map[string]notice), make(map[string]string), make(map[string]bool)
	for _, n := range s.arrived(path) {
		change := stamp{n.task.Status.State, n.task.Status.ChangedAt}
		if first, again := byID[n.id]; again && !bytes.Equal(first.body, n.body) {
			s.t.Fatalf("two notifications have the id %s:\n%s\n%s", n.id, first.body, n.body)
		}
		key := n.path + " " + string(change.State) + change.At.UTC().Format(time.RFC3339Nano)
		if id, again := byStamp[key]; again && id != n.id {
			s.t.Fatalf("%s was notified of %v under the ids %s and %s", path, change, id, n.id)
		}
		byID[n.id], byStamp[key] = n, n.id
		if n.taken && !have[n.id] {
			have[n.id] = true
			out = append(out, change)
		}
	}
	return out
}

// waitForChanges waits until a path was notified of a history, and of nothing else.
func (s *sink) waitForChanges(path string, history []task.Status) {
	s.t.Helper()
	s.nudged(path, history, func() {})
}

// nudged is hears where something must be done while it waits.
func (s *sink) nudged(path string, history []task.Status, nudge func()) {
	s.t.Helper()
	want := stamps(history)
	eventually(s.t, fmt.Sprintf("%s is notified of %v", path, states(history)), func() bool {
		nudge()
		return len(s.changes(path)) >= len(want)
	})
	if diff := cmp.Diff(want, s.changes(path), cmpopts.EquateEmpty()); diff != "" {
		s.t.Errorf("the notifications of %s (-history +notified):\n%s", path, diff)
	}
}

// inOrder demands that nothing was sent to a path after something later of the same task.
func (s *sink) inOrder(path string) {
	s.t.Helper()
	last := make(map[string]time.Time)
	for _, n := range s.arrived(path) {
		key, at := n.path+" "+n.task.ID, n.task.Status.ChangedAt
		if at.Before(last[key]) {
			s.t.Errorf("%s was sent %s of %v after what is of %v", n.path, n.task.Status.State, at, last[key])
		}
		last[key] = at
	}
}

func always(r response) func(*notice) response { return func(*notice) response { return r } }

// taken answers with success.
func taken() response { return response{true, plainly(200, "")} }

// refusal answers with a status and header fields, each with its line's end.
func refusal(status int, fields ...string) response {
	return response{false, plainly(status, strings.Join(fields, ""))}
}

func plainly(status int, fields string) func(net.Conn) bool {
	return func(conn net.Conn) bool {
		_, err := fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\n%sContent-Length: 0\r\n\r\n", status, http.StatusText(status), fields)
		return err == nil
	}
}

// hangs answers nothing until the gateway has lost its patience.
func hangs() response {
	return response{false, func(conn net.Conn) bool {
		_, _ = io.Copy(io.Discard, conn)
		return false
	}}
}

// resets breaks the connection.
func resets() response {
	return response{false, func(conn net.Conn) bool {
		if c, ok := conn.(*net.TCPConn); ok {
			_ = c.SetLinger(0)
		}
		return false
	}}
}

// saysOnly writes these words and closes the connection.
func saysOnly(words string) response {
	return response{false, func(conn net.Conn) bool {
		_, _ = io.WriteString(conn, words)
		return false
	}}
}

// slowly takes the notification, a byte at a time.
func slowly() response {
	return response{true, func(conn net.Conn) bool {
		pace := time.NewTicker(5 * time.Millisecond)
		defer pace.Stop()
		for _, b := range []byte("HTTP/1.1 204 No Content\r\n\r\n") {
			<-pace.C
			if _, err := conn.Write([]byte{b}); err != nil {
				return false
			}
		}
		return true
	}}
}

// verbosely answers with a status and a body that is larger than the gateway reads.
func verbosely(status int) response {
	return response{status == 200, func(conn net.Conn) bool {
		_, err := fmt.Fprintf(conn, "HTTP/1.1 %d Oh\r\nContent-Length: %d\r\n\r\n", status, 64<<20)
		for words := bytes.Repeat([]byte("and so on "), 1000); err == nil; {
			_, err = conn.Write(words)
		}
		return false
	}}
}

// endlessly takes the notification, but its answer has no end.
func endlessly() response {
	return response{true, func(conn net.Conn) bool {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nand")
		_, _ = io.Copy(io.Discard, conn)
		return false
	}}
}
