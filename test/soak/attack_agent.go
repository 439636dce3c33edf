// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// misdeeds is how many turns the hostile agent has at once.
const misdeeds = 12

// hostileAgent is an agent that the hostile Leader has start to misbehave.
func hostileAgent(a *attack) []*kind {
	act := a.as("/hostile", a.startMisdeeds)
	return []*kind{{name: "agent: answers that are wrong, huge or endless", act: act, least: 40}}
}

func (a *attack) startMisdeeds(ctx context.Context, c *culprit, t *tally) {
	atOnce(ctx, misdeeds, 200*time.Millisecond, func(i, round int) {
		_, err := c.Do(ctx, begin(fmt.Sprintf("misdeed-%d-%d", i, round), "hello"))
		t.note(err)
	})
}

// badAgent is an agent that does another wrong to each request.
type badAgent struct {
	listener net.Listener
	requests atomic.Int64

	work  sync.WaitGroup
	mu    sync.Mutex
	conns map[net.Conn]bool // open; nil when the agent is closed
}

// newBadAgent returns an agent with a certificate, which the caller must close.
func newBadAgent(s *fixture) (*badAgent, error) {
	cert, err := tls.LoadX509KeyPair(s.PKI.Server.Cert, s.PKI.Server.Key)
	if err != nil {
		return nil, err
	}
	l, err := tls.Listen("tcp", s.BadAgent, &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		return nil, err
	}
	b := &badAgent{listener: l, conns: make(map[net.Conn]bool)}
	b.work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			b.work.Go(func() { b.serve(conn) })
		}
	})
	return b, nil
}

func (b *badAgent) close() {
	_ = b.listener.Close()
	b.mu.Lock()
	for conn := range b.conns {
		_ = conn.Close()
	}
	b.conns = nil
	b.mu.Unlock()
	b.work.Wait()
}

func (b *badAgent) serve(conn net.Conn) {
	b.mu.Lock()
	open := b.conns != nil
	if open {
		b.conns[conn] = true
	}
	b.mu.Unlock()
	defer func() {
		_ = conn.Close()
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.conns, conn)
	}()
	r := bufio.NewReader(conn)
	for open {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		wrong := wrongs[b.requests.Add(1)%int64(len(wrongs))]
		if _, err := io.Copy(conn, wrong()); err != nil {
			return
		}
	}
}

// answer is an HTTP response with a length.
func answer(status, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		status, len(body), body)
}

// ofAnother is the result of a task that the gateway has not asked for.
const ofAnother = `{"jsonrpc":"2.0","id":"1","result":{"id":"another","status":{"state":"completed"},` +
	`"artifacts":[{"parts":[{"type":"text","text":"of another"}]}]}}`

// wrongs are the answers of a badAgent.
var wrongs = []func() io.Reader{
	func() io.Reader { return strings.NewReader(answer("200 OK", ofAnother) + answer("200 OK", ofAnother)) },
	func() io.Reader { return strings.NewReader(answer("500 Oops", "{}") + "\r\n\r\n") },
	func() io.Reader { // a string without an end
		return io.MultiReader(strings.NewReader("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"+
			`{"jsonrpc":"2.0","id":"1","result":{"id":"`), io.LimitReader(endless("x"), 64<<20))
	},
	func() io.Reader { // events without an end
		return io.MultiReader(strings.NewReader("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"),
			io.LimitReader(endless("data: "+ofAnother+"\n\n"), 64<<20))
	},
	func() io.Reader { // depth
		return strings.NewReader(answer("200 OK", strings.Repeat("[", 1<<20)))
	},
	func() io.Reader { // headers without an end
		return io.MultiReader(strings.NewReader("HTTP/1.1 200 OK\r\n"), io.LimitReader(endless("X-Y: z\r\n"), 8<<20))
	},
	func() io.Reader { // nothing
		return strings.NewReader("")
	},
}

// endless repeats a text for ever.
type endless string

// Read implements io.Reader.
func (e endless) Read(p []byte) (n int, _ error) {
	for n+len(e) <= len(p) {
		n += copy(p[n:], e)
	}
	if n == 0 {
		n = copy(p, e)
	}
	return n, nil
}
