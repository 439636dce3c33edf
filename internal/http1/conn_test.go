// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

const short = begin + "Content-Length: 2\r\n\r\nok"

// pairs are ways to connect a client with a server.
var pairs = map[string]func(t *testing.T) (client, server net.Conn){
	"TCP": tcp,
	"TLS": func(t *testing.T) (client, server net.Conn) {
		plain, other := tcp(t)
		return secured(t, plain, other)
	},
	"a pipe": func(*testing.T) (client, server net.Conn) { return net.Pipe() },
}

// secured returns two ends of a connection with TLS between them.
func secured(t *testing.T, client, server net.Conn) (out, in *tls.Conn) {
	t.Helper()
	in = tls.Server(server, &tls.Config{Certificates: certificate(), SessionTicketsDisabled: true})
	out = Secure(client, &tls.Config{InsecureSkipVerify: true})
	done := make(chan error)
	go func() { done <- in.HandshakeContext(context.Background()) }()
	if err := errors.Join(out.HandshakeContext(t.Context()), <-done); err != nil {
		t.Fatal(err)
	}
	return out, in
}

func tcp(t *testing.T) (client, server net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err == nil {
		server, err = l.Accept()
	}
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

// exchange sends a request on a connection, and reads the server's answer.
func exchange(t *testing.T, c *Conn, server net.Conn, answer string) string {
	t.Helper()
	served := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(server, make([]byte, len("request")))
		if err == nil {
			_, err = io.WriteString(server, answer)
		}
		served <- err
	}()
	c.Begin(time.Minute)
	_, err := c.Write([]byte("request"))
	if err == nil {
		err = c.ReadHead()
	}
	var body []byte
	if err == nil {
		body, err = io.ReadAll(c)
	}
	if err = errors.Join(err, <-served); err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// noticed waits until the server's acts of the idle time have arrived.
func noticed(c *Conn) {
	if !c.socket.known() {
		<-c.watch.done
		return
	}
	for c.socket.quiet() {
	}
}

// TestPool: an idle connection is used again, but not after the server has closed it or sent something.
func TestPool(t *testing.T) {
	for name, connect := range pairs {
		for what, meanwhile := range map[string]func(server net.Conn){
			"nothing":      nil,
			"an end":       func(server net.Conn) { server.Close() },
			"an answer":    func(server net.Conn) { go io.WriteString(server, short) },
			"a single bit": func(server net.Conn) { go io.WriteString(server, "x") },
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				client, server := connect(t)
				defer server.Close()
				p := NewPool(1, time.Hour)
				defer p.Close()
				if p.Get() != nil {
					t.Error("an empty pool has a connection")
				}
				c := NewConn(client)
				for range 3 {
					if got := exchange(t, c, server, short); got != "ok" {
						t.Errorf("the answer is %q", got)
					}
					p.Put(c)
					if got := p.Get(); got != c || !got.Reused() {
						t.Fatalf("the connection is %v, and not the one that was given back", got)
					}
				}
				p.Put(c)
				if meanwhile == nil {
					return
				}
				meanwhile(server)
				noticed(c)
				if p.Get() != nil {
					t.Error("the connection is used again")
				}
			})
		}
	}
}

// TestPoolCloses: a connection is closed if it cannot be used again, has been idle for too long, or has no room.
func TestPoolCloses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := NewPool(2, 4*time.Second)
		var open atomic.Int64
		put := func(answer string) {
			client, server := net.Pipe()
			open.Add(1)
			c := NewConn(client)
			exchange(t, c, server, answer)
			go func() {
				io.Copy(io.Discard, server)
				server.Close()
				open.Add(-1)
			}()
			p.Put(c)
			synctest.Wait()
		}
		put(strings.Replace(short, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1))
		if n := open.Load(); n != 0 {
			t.Errorf("%d connections are open after the last answer", n)
		}
		put(short)
		time.Sleep(3 * time.Second)
		put(short)
		put(short)
		if n := open.Load(); n != 2 {
			t.Errorf("%d connections are open, of which there is room for 2", n)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := open.Load(); n != 1 {
			t.Errorf("%d connections are open after one was idle for 4 s", n)
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if n := open.Load(); n != 0 {
			t.Errorf("%d connections are open after all were idle for 4 s", n)
		}
		put(short)
		p.Close()
		put(short)
		if n := open.Load(); n != 0 {
			t.Errorf("%d connections are open after the pool was closed", n)
		}
	})
}

// moved counts the moves of the deadline for reading.
type moved struct {
	net.Conn
	n int
}

func (m *moved) SetReadDeadline(at time.Time) error {
	m.n++
	return m.Conn.SetReadDeadline(at)
}

// TestIdleTimeout: a server may take as long as it likes if it is never silent for too long, the timeout is exact, and
// the deadline of the connection is not moved for each read.
func TestIdleTimeout(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer server.Close()
		conn := &moved{Conn: client}
		c := NewConn(conn)
		defer c.Close()
		const bytes, idle = 1000, time.Minute
		go func() {
			io.ReadFull(server, make([]byte, len("request")))
			io.WriteString(server, begin+"Content-Length: 1001\r\n\r\n")
			for range bytes {
				time.Sleep(time.Second)
				io.WriteString(server, "x")
			}
		}()
		c.Begin(idle)
		c.Write([]byte("request"))
		if err := c.ReadHead(); err != nil {
			t.Fatal(err)
		}
		c.SetIdleTimeout(idle)
		begun := time.Now()
		body, err := io.ReadAll(c)
		if took := time.Since(begun); !errors.Is(err, ErrSilent) || len(body) != bytes || took != bytes*time.Second+idle {
			t.Errorf("after %v there are %d bytes, error %v", took, len(body), err)
		}
		if conn.n > 2*bytes/int(idle/time.Second) {
			t.Errorf("the deadline was moved %d times", conn.n)
		}
	})
}

// TestSlowAnswer: a head, and an answer after it, must come within a time, however often the server sends something.
func TestSlowAnswer(t *testing.T) {
	const limit = time.Minute
	for _, tc := range []struct {
		name, head string
		pause      time.Duration // before each byte of the head and of the answer
		want       error
		took       time.Duration // for the answer; zero if its head has not come
	}{
		{"in time", begin + "Content-Length: 2\r\n\r\n", time.Second, nil, 2 * time.Second},
		{"each in time", begin + "Content-Length: 35\r\n\r\n", time.Second, nil, 35 * time.Second},
		{"a slow head", begin + "Content-Length: 2\r\n\r\n", 2 * time.Second, ErrSlow, 0},
		{"a slow answer", begin + "Content-Length: 1000\r\n\r\n", time.Second, ErrSlow, limit},
		{"a slow answer in chunks", begin + "Transfer-Encoding: chunked\r\n\r\n", time.Second, ErrSlow, limit},
		{"a silent answer", begin + "Content-Length: 2\r\n\r\n", 0, ErrSilent, limit},
	} {
		bubble.Test(t, func(t *testing.T) {
			client, server := net.Pipe()
			c := NewConn(client)
			var serving sync.WaitGroup
			defer serving.Wait()
			defer c.Close()
			serving.Go(func() {
				defer server.Close()
				io.ReadFull(server, make([]byte, len("request")))
				for _, b := range []byte(tc.head) {
					time.Sleep(tc.pause)
					server.Write([]byte{b})
				}
				for tc.pause > 0 {
					time.Sleep(tc.pause)
					piece := "x"
					if strings.Contains(tc.head, "chunked") {
						piece = "1\r\nx\r\n"
					}
					if _, err := io.WriteString(server, piece); err != nil {
						return
					}
				}
				io.Copy(io.Discard, server)
			})
			c.Begin(limit)
			c.Write([]byte("request"))
			err := c.ReadHead()
			var took time.Duration
			if err == nil {
				c.Renew()
				begun := time.Now()
				_, err = io.Copy(io.Discard, c)
				took = time.Since(begun)
			}
			if !errors.Is(err, tc.want) || took != tc.took {
				t.Errorf("%s: after %v: %v, want %v after %v", tc.name, took, err, tc.want, tc.took)
			}
		})
	}
}

// TestStop: a wait can be ended at any moment, even in a record of TLS, and continued, and nothing of the answer is
// lost.
func TestStop(t *testing.T) {
	const answer = begin + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nX: y\r\n\r\n"
	certificate := certificate()
	for _, secure := range []bool{false, true} {
		for _, byTime := range []bool{false, true} {
			bubble.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				slow := &byByte{Conn: server}
				server = slow
				if secure {
					server = tls.Server(slow, &tls.Config{Certificates: certificate})
					client = Secure(client, &tls.Config{InsecureSkipVerify: true})
					go server.(*tls.Conn).HandshakeContext(t.Context())
					if err := client.(*tls.Conn).HandshakeContext(t.Context()); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				slow.pause = time.Second
				c := NewConn(client)
				c.Begin(time.Hour)
				go func() {
					io.WriteString(server, answer)
					slow.pause = 0
					server.Close()
				}()
				got, stops := readStopping(t, c, byTime)
				if got != "abcde" || stops < len(answer)/2 {
					t.Errorf("TLS %v: the answer is %q after %d stops", secure, got, stops)
				}
				c.Close()
			})
		}
	}
}

// certificate returns a certificate for a server.
func certificate() []tls.Certificate {
	srv := httptest.NewUnstartedServer(nil)
	srv.StartTLS()
	defer srv.Close()
	return srv.TLS.Certificates
}

// byByte is a connection writing one byte after another, with a pause before each.
type byByte struct {
	net.Conn
	pause time.Duration
}

func (b *byByte) Write(p []byte) (n int, err error) {
	for ; n < len(p) && err == nil; n++ {
		if b.pause > 0 {
			time.Sleep(b.pause)
		}
		_, err = b.Conn.Write(p[n : n+1])
	}
	return n, err
}

// readStopping reads an answer, stopping each wait after 1.5 s, and returns its content and the number of stopped
// waits.
func readStopping(t *testing.T, c *Conn, byTime bool) (content string, stops int) {
	t.Helper()
	const after = 1500 * time.Millisecond
	wait := func(f func() error) {
		for {
			var stopping *time.Timer
			if byTime {
				c.StopAt(time.Now().Add(after))
			} else {
				stopping = time.AfterFunc(after, c.StopFunc)
			}
			err := f()
			if stopping != nil {
				stopping.Stop()
			}
			if !errors.Is(err, ErrStopped) {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			stops++
			c.Resume()
		}
	}
	wait(c.ReadHead)
	for !c.ended {
		b := make([]byte, 10)
		wait(func() error {
			n, err := c.Read(b)
			if content += string(b[:n]); err == io.EOF {
				err = nil
			}
			return err
		})
	}
	return content, stops
}

// TestStopBeforeRead: a wait begun after Stop ends at once, and Abort ends a write.
func TestStopBeforeRead(t *testing.T) {
	for name, connect := range pairs {
		t.Run(name, func(t *testing.T) {
			client, server := connect(t)
			defer server.Close()
			c := NewConn(client)
			defer c.Close()
			c.Begin(time.Hour)
			for range 3 {
				c.Stop()
				for range 2 {
					if err := c.ReadHead(); err != ErrStopped {
						t.Fatal(err)
					}
				}
				c.Resume()
			}
			if got := exchange(t, c, server, short); got != "ok" {
				t.Errorf("the answer is %q", got)
			}
			c.Begin(time.Hour)
			go c.Abort()
			for {
				if _, err := c.Write(make([]byte, 1<<20)); err != nil {
					if err != ErrStopped {
						t.Error(err)
					}
					break
				}
			}
			if err := c.ReadHead(); err != ErrStopped {
				t.Error(err)
			}
		})
	}
}
