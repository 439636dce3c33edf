// SPDX-License-Identifier: Apache-2.0

package httptransport_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// TestMisbehavingAgent: the errors for the misdeeds of agents in an exchange. The wire itself is tested in
// internal/http1.
func TestMisbehavingAgent(t *testing.T) {
	const before = "invalid-agent-response, disconnected: the connection to the agent broke before it answered"
	const within = "invalid-agent-response, disconnected: the connection to the agent broke in the middle of its answer"
	for _, tc := range []struct{ name, answer, want string }{
		{"it answers", answered("{}"), "{}"},
		{"it answers after others", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" + answered("{}"), "{}"},
		{"it answers as in 1996", "HTTP/1.0 200 OK\r\n\r\n{}", "{}"},
		{"it closes the connection", "", before},
		{"it speaks another protocol", "220 mail.example.com ESMTP\r\n", before},
		{"its head is cut", "HTTP/1.1 200 OK\r\nContent-", before},
		{"its head is huge", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 100_000), before},
		{"it changes the protocol", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", before},
		{"it sends two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", before},
		{"its answer is cut", "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{", within},
		{"its chunks are no chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", within},
		{"its chunks do not end", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", within},
		{"it says that its answer is huge", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
			"invalid-agent-response, no reason: the agent's answer is larger than 1000 bytes"},
		{"its answer is huge", "HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("x", 1001),
			"invalid-agent-response, no reason: the agent's answer is larger than 1000 bytes"},
		{"it is silent", "silent", "agent-timeout, no reason: the agent was silent for 1s"},
		{"it is silent within the head", "silent HTTP/1.1 200 OK\r\n",
			"agent-timeout, no reason: the agent has begun an answer and not ended it within 1s"},
		{"it is silent within the answer", "silent HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{",
			"agent-timeout, no reason: the agent was silent for 1s"},
	} {
		for _, scheme := range schemes {
			t.Run(tc.name+", "+scheme, func(t *testing.T) {
				answer, silent := strings.CutPrefix(tc.answer, "silent")
				a := newRawAgent(t, scheme, func(conn net.Conn, in *bufio.Reader, _ int) {
					if _, err := readRequest(in); err != nil {
						return
					}
					io.WriteString(conn, strings.TrimPrefix(answer, " "))
					if silent {
						io.Copy(io.Discard, in)
					}
				})
				a.MaxReply = 1000
				transport := a.transport(t)
				req := requestOf("{}")
				if silent {
					req.IdleTimeout = time.Second
				}
				got, err := send(t.Context(), transport, req)
				if e, ok := errors.AsType[*task.Error](err); ok {
					got = fmt.Sprintf("%v, %v: %s", e.Kind, upstream.ReasonOf(err), e.Detail)
				}
				if got != tc.want {
					t.Errorf("%s, want %s (%v)", got, tc.want, err)
				}
			})
		}
	}
}

// TestAnswerWithoutEnd has an agent answer a request for a stream by one message that never ends. Sending something all
// the time gives it no more time.
func TestAnswerWithoutEnd(t *testing.T) {
	for _, scheme := range schemes {
		a := newRawAgent(t, scheme, func(conn net.Conn, in *bufio.Reader, _ int) {
			if _, err := readRequest(in); err != nil {
				return
			}
			_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{")
			more := time.NewTicker(time.Millisecond)
			defer more.Stop()
			for err == nil {
				<-more.C
				_, err = io.WriteString(conn, " ")
			}
		})
		req := requestOf("{}")
		req.Operation, req.IdleTimeout = translate.SendStream, 2*time.Second
		_, err := send(t.Context(), a.transport(t), req)
		const want = "agent-timeout: the agent has begun an answer and not ended it within 2s"
		if fmt.Sprint(err) != want {
			t.Errorf("%s: %v, want %s", scheme, err, want)
		}
	}
}

// TestReuse: a connection carries one exchange after another, and as many are opened as are needed at once.
func TestReuse(t *testing.T) {
	for _, scheme := range schemes {
		a := newRawAgent(t, scheme, func(conn net.Conn, in *bufio.Reader, _ int) {
			for {
				body, err := readRequest(in)
				if err != nil {
					return
				}
				io.WriteString(conn, answered(body))
			}
		})
		transport := a.transport(t)
		exchanges := func(name string) {
			for i := range 100 {
				want := fmt.Sprint(name, i)
				if got, err := send(t.Context(), transport, requestOf(want)); got != want {
					t.Errorf("%q got %q, error %v", want, got, err)
				}
			}
		}
		exchanges("first")
		if n := a.conns.Load(); n != 1 {
			t.Errorf("%s: %d connections were opened for one exchange after another", scheme, n)
		}
		const workers = 8
		var working sync.WaitGroup
		for i := range workers {
			working.Go(func() { exchanges(fmt.Sprint("worker ", i)) })
		}
		working.Wait()
		if n := a.conns.Load(); n > workers {
			t.Errorf("%s: %d connections were opened for %d exchanges at once", scheme, n, workers)
		}
	}
}

// TestAfterServerFailed: a connection is not used again after the server has failed: it may be about to close it, and
// says so only for some failures.
func TestAfterServerFailed(t *testing.T) {
	for _, scheme := range schemes {
		for status, reused := range map[int]bool{200: true, 404: true, 429: true, 500: false, 501: false, 503: false} {
			a := newRawAgent(t, scheme, func(conn net.Conn, in *bufio.Reader, _ int) {
				for {
					if _, err := readRequest(in); err != nil {
						return
					}
					fmt.Fprintf(conn, "HTTP/1.1 %d Status\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nno", status)
				}
			})
			transport := a.transport(t)
			for range 2 {
				if got, err := send(t.Context(), transport, requestOf("x")); got != "no" || err != nil {
					t.Errorf("%s, %d: %q, %v", scheme, status, got, err)
				}
			}
			if n := a.conns.Load(); (n == 1) != reused {
				t.Errorf("%s, %d: %d connections for two exchanges", scheme, status, n)
			}
		}
	}
}

// TestClosedWhileIdle: nothing is sent on a connection after the agent has closed it, or has sent something on it:
// every message arrives, and every answer belongs to its request.
func TestClosedWhileIdle(t *testing.T) {
	for _, scheme := range schemes {
		for what, after := range map[string]func(conn net.Conn){
			"closes": func(conn net.Conn) { conn.Close() },
			"closes one way": func(conn net.Conn) {
				conn.(interface{ CloseWrite() error }).CloseWrite()
			},
			"answers without a request": func(conn net.Conn) { io.WriteString(conn, answered("unasked")) },
		} {
			t.Run(scheme+", "+what, func(t *testing.T) {
				idle := make(chan struct{})
				a := newRawAgent(t, scheme, func(conn net.Conn, in *bufio.Reader, _ int) {
					body, err := readRequest(in)
					if err != nil {
						return
					}
					io.WriteString(conn, answered(body))
					<-idle // the client has read the answer
					after(conn)
					idle <- struct{}{}
					if body, err := readRequest(in); err == nil {
						t.Errorf("%q was sent on a connection that is used up", body)
					}
				})
				transport := a.transport(t)
				for i := range 50 {
					want := fmt.Sprint(i)
					if got, err := send(t.Context(), transport, requestOf(want)); got != want {
						t.Errorf("%q got %q, error %v", want, got, err)
					}
					idle <- struct{}{}
					<-idle
				}
			})
		}
	}
}

// TestNothingIsSentTwice: a message reaches an agent breaking connections at any moment at most once. It has reached
// the agent if there is an answer, and has not if the error says so.
func TestNothingIsSentTwice(t *testing.T) {
	for _, scheme := range schemes {
		var mu sync.Mutex
		received := make(map[string]int)
		a := newRawAgent(t, scheme, func(conn net.Conn, in *bufio.Reader, _ int) {
			for {
				if rand.N(10) == 0 {
					return
				}
				body, err := readRequest(in)
				if err != nil {
					return
				}
				mu.Lock()
				received[body]++
				mu.Unlock()
				answer := answered(body)
				switch rand.N(10) {
				case 0:
					return
				case 1:
					io.WriteString(conn, answer[:rand.N(len(answer))])
					return
				}
				io.WriteString(conn, answer)
			}
		})
		transport := a.transport(t)
		var working sync.WaitGroup
		for w := range 4 {
			working.Go(func() {
				for i := range 300 {
					id := fmt.Sprint(w, "-", i)
					got, err := send(t.Context(), transport, requestOf(id))
					mu.Lock()
					n := received[id]
					mu.Unlock()
					reason := upstream.ReasonOf(err)
					switch {
					case err == nil && (got != id || n != 1):
						t.Errorf("%s: answered by %q, received %d times", id, got, n)
					case err != nil && reason == upstream.Unreachable && n > 0:
						t.Errorf("%s: received %d times, but %v", id, n, err)
					case err != nil && reason != upstream.Unreachable && reason != upstream.Disconnected:
						t.Errorf("%s: %v", id, err)
					}
				}
			})
		}
		working.Wait()
		for id, n := range received {
			if n > 1 {
				t.Errorf("%s was received %d times", id, n)
			}
		}
	}
}

// TestEarlyAnswer: an answer before the agent has read the request counts, whether the agent then closes the connection
// or reads no more. The connection is not used again.
func TestEarlyAnswer(t *testing.T) {
	for _, scheme := range schemes {
		for _, closes := range []bool{false, true} {
			over := make(chan struct{})
			a := newRawAgent(t, scheme, func(conn net.Conn, in *bufio.Reader, _ int) {
				in.Discard(1000)
				io.WriteString(conn, answered("enough"))
				if !closes {
					<-over
				}
			})
			transport := a.transport(t)
			for range 3 {
				got, err := send(t.Context(), transport, requestOf(strings.Repeat("x", 8<<20)))
				if closes && upstream.ReasonOf(err) == upstream.Disconnected {
					continue // the unread part has reset the connection, and the answer with it
				}
				if got != "enough" {
					t.Errorf("the answer is %q, error %v", got, err)
				}
			}
			close(over)
			if n := a.conns.Load(); n != 3 {
				t.Errorf("%d connections were opened", n)
			}
		}
	}
}

// TestConnectionAfterLargeBody: requests with large bodies share a connection, if their agent reads each before it
// answers.
func TestConnectionAfterLargeBody(t *testing.T) {
	a := newRawAgent(t, "http", func(conn net.Conn, in *bufio.Reader, _ int) {
		for {
			if _, err := readRequest(in); err != nil {
				return
			}
			io.WriteString(conn, answered("{}"))
		}
	})
	transport := a.transport(t)
	for range 1000 {
		if _, err := send(t.Context(), transport, requestOf(strings.Repeat("x", 20<<10))); err != nil {
			t.Fatal(err)
		}
	}
	if n := a.conns.Load(); n != 1 {
		t.Errorf("%d connections were opened for 1000 requests", n)
	}
}

// TestLargeBody: a large body arrives whole, and is not kept while the agent works.
func TestLargeBody(t *testing.T) {
	for _, scheme := range schemes {
		arrived, answer := make(chan string), make(chan struct{})
		a := newRawAgent(t, scheme, func(conn net.Conn, in *bufio.Reader, _ int) {
			body, _ := readRequest(in)
			arrived <- body
			<-answer
			io.WriteString(conn, answered("{}"))
		})
		const size = 4 << 20
		var kept weak.Pointer[byte]
		req := requestOf("")
		req.Encode = func([]byte) []byte {
			body := []byte(strings.Repeat("x", size))
			kept = weak.Make(&body[0])
			return body
		}
		transport := a.transport(t)
		done := make(chan error)
		go func() {
			_, err := send(t.Context(), transport, req)
			done <- err
		}()
		if body := <-arrived; body != strings.Repeat("x", size) {
			t.Errorf("%d bytes arrived", len(body))
		}
		for i := 0; kept.Value() != nil; i++ {
			if i == 1000 {
				t.Fatal("the body is kept while the agent works")
			}
			runtime.GC()
		}
		close(answer)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestCancelAtAnyMoment: the end of the context ends an exchange at any place, and no goroutine is left.
func TestCancelAtAnyMoment(t *testing.T) {
	for name, tc := range map[string]struct {
		dials bool // the agent accepts the connection
		size  int  // of the request
		serve func(conn net.Conn, in *bufio.Reader)
	}{
		"while it connects": {},
		"while it sends":    {dials: true, size: 1 << 20, serve: func(_ net.Conn, in *bufio.Reader) { in.Discard(1000) }},
		"before the answer": {dials: true, serve: func(_ net.Conn, in *bufio.Reader) { readRequest(in) }},
		"in the head": {dials: true, serve: func(conn net.Conn, in *bufio.Reader) {
			readRequest(in)
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nX")
		}},
		"in the answer": {dials: true, serve: func(conn net.Conn, in *bufio.Reader) {
			readRequest(in)
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx")
		}},
		"in a stream": {dials: true, serve: func(conn net.Conn, in *bufio.Reader) {
			readRequest(in)
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: x\n\n")
		}},
	} {
		for _, interrupted := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", interrupted ", interrupted), func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					cancelOnce(t, tc.dials, interrupted, strings.Repeat("x", tc.size), tc.serve)
				})
			})
		}
	}
}

// cancelOnce cancels an exchange with an agent after a second. If interrupted, the exchange is continued by another
// goroutine then.
func cancelOnce(t *testing.T, dials, interrupted bool, body string, serve func(conn net.Conn, in *bufio.Reader)) {
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	transport, err := httptransport.New(httptransport.Config{
		URL: "http://agent/", Codec: a2a.Legacy(),
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if !dials {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			here, there := net.Pipe()
			serving.Go(func() {
				serve(there, bufio.NewReader(there))
				<-t.Context().Done()
				there.Close()
			})
			return here, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	req := requestOf(body)
	if interrupted {
		req.Interrupt = &upstream.Interrupt{}
		time.AfterFunc(time.Second/2, req.Interrupt.End)
	}
	time.AfterFunc(time.Second, cancel)
	begun := time.Now()
	x, err := transport.Routes(req.Operation)[0].Open(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	step := func(f func() error) error {
		err := f()
		if errors.Is(err, upstream.ErrInterrupted) {
			err = f()
		}
		return err
	}
	err = step(x.Begin)
	for err == nil {
		err = step(func() error { _, err := x.Next(); return err })
	}
	x.Close(err)
	if took := time.Since(begun); took != time.Second || task.KindOf(err) != task.Internal {
		t.Errorf("after %v: %v", took, err)
	}
	transport.Close()
}

// TestCertificateRefused: an agent refusing the gateway's certificate is recognized by its alert, though it comes after
// the handshake, and after any part of the request.
func TestCertificateRefused(t *testing.T) {
	for _, size := range []int{10, 1 << 20} {
		a := newRawAgent(t, "https", func(conn net.Conn, in *bufio.Reader, _ int) { readRequest(in) })
		a.refuses.Store(true)
		transport := a.transport(t)
		for range 10 {
			_, err := send(t.Context(), transport, requestOf(strings.Repeat("x", size)))
			if reason := upstream.ReasonOf(err); reason != upstream.CertificateRefused {
				t.Errorf("a request of %d bytes: %v: %v", size, reason, err)
			}
		}
	}
}
