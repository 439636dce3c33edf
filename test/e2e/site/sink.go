// SPDX-License-Identifier: Apache-2.0

package site

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

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Notice is one notification that a sink was sent.
type Notice struct {
	Path   string      // of the webhook, with its query
	ID     string      // its webhook-id
	Header http.Header // of the request
	Body   []byte      // of the request
	Task   task.Task   // as the body has it
	At     time.Time   // when it had arrived
	taken  bool        // it is answered with success
}

// Stamp is a state of a task and when it was entered, which is different for every change of a task.
type Stamp struct {
	State task.State
	At    time.Time
}

// Stamps returns the stamps of a history.
func Stamps(history []task.Status) []Stamp {
	var out []Stamp
	for i := range history {
		out = append(out, Stamp{history[i].State, history[i].ChangedAt})
	}
	return out
}

// Response is what becomes of a notification that has arrived.
type Response struct {
	Taken bool                         // it is a success
	Write func(net.Conn) (goesOn bool) // the connection serves the next request
}

// Sink is a receiver of notifications, down to TCP: whether it is there, and what it answers, is up to the test.
type Sink struct {
	t       testing.TB
	Address string // host and port
	tls     *tls.Config
	work    sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil while it is down
	conns    map[net.Conn]bool
	answer   func(*Notice) Response
	got      []Notice
}

// NewSink returns a sink that is up and takes everything.
func NewSink(t testing.TB) *Sink {
	t.Helper()
	return NewTLSSink(t, nil)
}

// NewTLSSink returns a sink that speaks TLS, unless config is nil.
func NewTLSSink(t testing.TB, config *tls.Config) *Sink {
	t.Helper()
	s := &Sink{t: t, Address: fmt.Sprintf("127.0.0.1:%d", FreePort(t)), tls: config, conns: make(map[net.Conn]bool)}
	s.Answers(Always(Taken()))
	s.Up()
	t.Cleanup(s.Down)
	return s
}

// Origin returns the sink's URL, without a path.
func (s *Sink) Origin() string { return "http://" + s.Address }

// Up lets the sink listen.
func (s *Sink) Up() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		return
	}
	l, err := net.Listen("tcp", s.Address)
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

// Down closes the sink's port and all its connections, and waits until nothing more can arrive.
func (s *Sink) Down() {
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

// Answers sets what notifications are answered from now on. answer is called by one goroutine at a time.
func (s *Sink) Answers(answer func(*Notice) Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *Sink) serve(raw net.Conn) {
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
		n := Notice{
			Path:   req.URL.RequestURI(),
			ID:     req.Header.Get("webhook-id"),
			Header: req.Header,
			Body:   body,
			At:     time.Now(),
		}
		if req.Method != http.MethodPost || json.Unmarshal(body, &n.Task) != nil {
			s.t.Errorf("the sink was sent %s %s with %.200q", req.Method, n.Path, body)
		}
		s.mu.Lock()
		out := s.answer(&n)
		n.taken = out.Taken
		s.got = append(s.got, n)
		s.mu.Unlock()
		if !out.Write(conn) {
			return
		}
	}
}

// Arrived returns what has arrived at a path, in order; at all paths where that is "".
func (s *Sink) Arrived(path string) []Notice {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Notice
	for _, n := range s.got {
		if path == "" || n.Path == path {
			out = append(out, n)
		}
	}
	return out
}

// Changes returns the changes of which a path was notified, by the first notification of each that it has accepted. It
// fails the test where two notifications of a change have different ids or bodies, or two of one id are about different
// changes.
func (s *Sink) Changes(path string) []Stamp {
	s.t.Helper()
	var out []Stamp
	byID, byStamp, have := make(map[string]Notice), make(map[string]string), make(map[string]bool)
	for _, n := range s.Arrived(path) {
		change := Stamp{n.Task.Status.State, n.Task.Status.ChangedAt}
		if first, again := byID[n.ID]; again && !bytes.Equal(first.Body, n.Body) {
			s.t.Fatalf("two notifications have the id %s:\n%s\n%s", n.ID, first.Body, n.Body)
		}
		key := n.Path + " " + string(change.State) + change.At.UTC().Format(time.RFC3339Nano)
		if id, again := byStamp[key]; again && id != n.ID {
			s.t.Fatalf("%s was notified of %v under the ids %s and %s", path, change, id, n.ID)
		}
		byID[n.ID], byStamp[key] = n, n.ID
		if n.taken && !have[n.ID] {
			have[n.ID] = true
			out = append(out, change)
		}
	}
	return out
}

// WaitForChanges waits until a path was notified of a history, and of nothing else.
func (s *Sink) WaitForChanges(path string, history []task.Status) {
	s.t.Helper()
	s.Nudged(path, history, func() {})
}

// Nudged is WaitForChanges, and calls nudge again and again meanwhile.
func (s *Sink) Nudged(path string, history []task.Status, nudge func()) {
	s.t.Helper()
	want := Stamps(history)
	Eventually(s.t, fmt.Sprintf("%s is notified of %v", path, States(history)), func() bool {
		nudge()
		return len(s.Changes(path)) >= len(want)
	})
	if diff := cmp.Diff(want, s.Changes(path), cmpopts.EquateEmpty()); diff != "" {
		s.t.Errorf("the notifications of %s (-history +notified):\n%s", path, diff)
	}
}

// InOrder demands that nothing was sent to a path after something later of the same task.
func (s *Sink) InOrder(path string) {
	s.t.Helper()
	last := make(map[string]time.Time)
	for _, n := range s.Arrived(path) {
		key, at := n.Path+" "+n.Task.ID, n.Task.Status.ChangedAt
		if at.Before(last[key]) {
			s.t.Errorf("%s was sent %s of %v after what is of %v", n.Path, n.Task.Status.State, at, last[key])
		}
		last[key] = at
	}
}

// Always answers each notification alike.
func Always(r Response) func(*Notice) Response { return func(*Notice) Response { return r } }

// Taken answers with success.
func Taken() Response { return Response{true, plainly(200, "")} }

// Refusal answers with a status and header fields, each with its line's end.
func Refusal(status int, fields ...string) Response {
	return Response{false, plainly(status, strings.Join(fields, ""))}
}

func plainly(status int, fields string) func(net.Conn) bool {
	return func(conn net.Conn) bool {
		_, err := fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\n%sContent-Length: 0\r\n\r\n", status, http.StatusText(status), fields)
		return err == nil
	}
}

// Hangs answers nothing until the gateway has lost its patience.
func Hangs() Response {
	return Response{false, func(conn net.Conn) bool {
		_, _ = io.Copy(io.Discard, conn)
		return false
	}}
}
