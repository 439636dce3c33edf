// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/upstream/upstreamtest"
)

// TestBodies reads bodies into buffers of any size: a fresh one, and one left by a large request without memory. Of a
// body too large, its begin is kept.
func TestBodies(t *testing.T) {
	const limit = 10 << 10
	h := openSite(t, func(h *setup) { h.Partner.Agent, h.Limits.Bytes = busyAgent{}, limit })
	for _, capacity := range []int{0, 1, 4 << 10, limit, 2 * limit} {
		for _, size := range []int{0, 1, limit, limit + 1, 2 * limit} {
			for _, length := range []int64{int64(size), -1} {
				body := strings.Repeat("x", size)
				r := httptest.NewRequest("POST", "/", wary{strings.NewReader(body)})
				r.ContentLength = length
				in := make([]byte, 0, capacity)
				e := exchange{front: h.Front, ctx: t.Context(), request: gateway.Request{Body: &in}}
				last, err := e.receive(httptest.NewRecorder(), r)
				want, tooLarge := body, size > limit
				if tooLarge {
					want = body[:gateway.BeginOfBody]
				}
				if got := string(*e.request.Body); task.IsBodyTooLarge(err) != tooLarge || err != nil && !tooLarge || last ||
					got != want {
					t.Errorf("capacity %d, a body of %d bytes, length %d: %d bytes, %v, the last one: %t", capacity, size,
						length, len(got), err, last)
				}
			}
		}
	}
}

// TestEndlessBodies: no more than a budget is read of a refused body, and only the begin of one announced to be larger.
// The connection ends with the answer then.
func TestEndlessBodies(t *testing.T) {
	h := openSite(t, func(h *setup) { h.Partner.Agent = busyAgent{} })
	for _, length := range []int64{-1, 1 << 40} {
		read := &counting{Reader: endless{}}
		r := httptest.NewRequest("POST", "/", read)
		r.ContentLength = length
		e := exchange{front: h.Front, ctx: t.Context(), request: gateway.Request{Body: gateway.NewBody()}}
		last, err := e.receive(httptest.NewRecorder(), r)
		most := gateway.BeginOfBody
		if length < 0 {
			most = 2*h.gateway.MaxBody() + skipMost + 1
		}
		if !task.IsBodyTooLarge(err) || !last || read.n > most || len(*e.request.Body) != gateway.BeginOfBody {
			t.Errorf("length %d: %d bytes were read, the last one: %t, %v", length, read.n, last, err)
		}
	}
}

// endless is a body without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// counting counts the bytes read.
type counting struct {
	io.Reader
	n int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

// wary is a body refusing to be read into no room, since this would never end.
type wary struct{ io.Reader }

func (w wary) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, errors.New("there is no room to read into")
	}
	return w.Reader.Read(p)
}

// TestSlowBodies: a late body is not waited for, over every protocol. The time ends with the body: an agent may take
// longer.
func TestSlowBodies(t *testing.T) {
	for name, protocol := range map[string]func(*http.Protocols){
		"HTTP/1.1": func(p *http.Protocols) { p.SetHTTP1(true) },
		"HTTP/2":   func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				var protocols http.Protocols
				protocol(&protocols)
				h := openSite(t, func(h *setup) {
					h.Partner.Agent = sleeper{work: 3 * h.front.BodyTimeout / 2, state: "awaiting-completion"}
				})
				l := upstreamtest.NewListener()
				server := &http.Server{Handler: h, Protocols: &protocols}
				var serving sync.WaitGroup
				serving.Go(func() { server.Serve(l) })
				transport := &http.Transport{Protocols: &protocols, DialContext: func(
					ctx context.Context, network, addr string,
				) (net.Conn, error) {
					return l.Dial(ctx, network, addr)
				}}
				for _, c := range []struct{ late, large bool }{{}, {late: true}, {late: true, large: true}} {
					late, body := c.late, message("rpc", "start", "t1", "hello")
					if c.large {
						body = message("rpc", "start", "t1", strings.Repeat("x", 16<<10))
					}
					begun := time.Now()
					rest, arrives := io.Pipe()
					go func() {
						if !late {
							io.WriteString(arrives, body[10:])
							arrives.Close()
						}
					}()
					r, err := http.NewRequestWithContext(t.Context(), "POST", "http://gateway/",
						io.MultiReader(strings.NewReader(body[:10]), rest))
					if err != nil {
						t.Fatal(err)
					}
					r.ContentLength = int64(len(body))
					want, took := http.StatusOK, h.setup.front.BodyTimeout*3/2
					if late {
						want, took = http.StatusBadRequest, h.setup.front.BodyTimeout
					}
					if c.large { // the reason of the refusal is known
						want = http.StatusOK
					}
					res, err := transport.RoundTrip(r)
					if err != nil {
						t.Fatalf("%+v: %v", c, err)
					}
					waited := time.Since(begun)
					rest.Close() // the client ends with the body of the request
					io.Copy(io.Discard, res.Body)
					res.Body.Close()
					if res.StatusCode != want || waited != took {
						t.Errorf("%+v: answered with %d after %v, want %d after %v",
							c, res.StatusCode, waited, want, took)
					}
				}
				transport.CloseIdleConnections()
				server.Close()
				serving.Wait()
			})
		})
	}
}

// TestRefusedBodies: a caller sending all of a body before it reads anything gets the reason for its refusal, and its
// connection goes on; whether the length is known or not, and whether the front or a preview has refused it. Nothing of
// the body is held while the rest is awaited.
//
// Promise: a Leader or an agent uses up memory, disk or connections
func TestRefusedBodies(t *testing.T) {
	const size, most = 16 << 20, 1 << 20 // more than a connection buffers
	large := message("rpc", "start", "t", strings.Repeat("x", size))
	for name, c := range map[string]struct {
		change  func(*setup)
		preview *identity.Peer
		says    string
	}{
		"too large":                {says: `"id":"1","error":{"code":-32600`},
		"too large for a preview":  {preview: &verified, says: `"limit":"bytes"`},
		"too large for a stranger": {preview: new(identity.Peer), says: `"limit":"bytes"`},
		"without a certificate": {change: func(h *setup) {
			h.Limits.Bytes = 2 * size
			h.Guard = &identity.Guard{Mode: identity.Required}
		}, says: `"id":"1","error":{"code":-32008`},
		"without memory": {change: func(h *setup) {
			h.Limits.Bytes = 2 * size
			h.Memory = limit.Limits{Total: 1 << 20, PerLeader: 1 << 20}
		}, says: `"code":-32050`},
	} {
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, chunked %t", name, chunked), func(t *testing.T) {
				g := open(t, func(h *setup) {
					h.http1, h.Limits.Bytes = true, most
					if c.change != nil {
						c.change(h)
					}
				})
				if c.preview != nil {
					g.previewing(*c.preview)
				}
				other := g.memory().Lease(limit.Unverified)
				if err := other.Hold(1 << 20); err != nil {
					t.Fatal(err)
				}
				defer other.Release()
				held := g.setup.Process.Memory.Total()
				conn, err := tls.Dial("tcp", g.server.Listener.Addr().String(),
					g.server.Client().Transport.(*http.Transport).TLSClientConfig)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				in := bufio.NewReader(conn)
				post := func(head, body, end string, until int) string {
					t.Helper()
					head = "POST /agents/one/rpc HTTP/1.1\r\nHost: gateway\r\n" + head
					if _, err := io.WriteString(conn, head+body[:until]); err != nil {
						t.Fatal(err)
					}
					if until < len(body) {
						asynctest.Eventually(t, "nothing is held", func() bool {
							return g.setup.Process.Memory.Total() == held
						})
					}
					if _, err := io.WriteString(conn, body[until:]+end); err != nil {
						t.Fatal(err)
					}
					res, err := http.ReadResponse(in, nil)
					if err != nil {
						t.Fatal(err)
					}
					defer res.Body.Close()
					answer, err := io.ReadAll(res.Body)
					if err != nil || res.StatusCode != 200 || res.Close {
						t.Errorf("answered with %d, close %t, %v", res.StatusCode, res.Close, err)
					}
					return string(answer)
				}
				head, end := fmt.Sprintf("Content-Length: %d\r\n\r\n", len(large)), ""
				if chunked {
					head, end = fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", len(large)), "\r\n0\r\n\r\n"
				}
				if got := post(head, large, end, size/2); !strings.Contains(got, c.says) {
					t.Errorf("got %.300s", got)
				}
				small := message("rpc", "get", "none", "")
				head = fmt.Sprintf("Content-Length: %d\r\n\r\n", len(small))
				if got := post(head, small, "", len(small)); !strings.Contains(got, `"error"`) {
					t.Errorf("the next call got %.300s", got)
				}
			})
		}
	}
}

// TestRefusedBodiesOfHTTP2: over HTTP/2, a body too large is read to its end, too.
func TestRefusedBodiesOfHTTP2(t *testing.T) {
	g := open(t, func(h *setup) { h.Limits.Bytes = 1 << 20 })
	for range 3 {
		sent := &counting{Reader: strings.NewReader(message("rpc", "start", "t", strings.Repeat("x", 16<<20)))}
		res, err := g.server.Client().Post(g.server.URL+"/agents/one/rpc", "application/json", sent)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.ProtoMajor != 2 || sent.n < 16<<20 ||
			!strings.Contains(string(answer), `"id":"1","error":{"code":-32600`) {
			t.Errorf("after %d bytes, %s: %.300s, %v", sent.n, res.Proto, answer, err)
		}
	}
}
