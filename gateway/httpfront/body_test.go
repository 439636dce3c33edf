// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/upstream/upstreamtest"
)

// TestBodies reads bodies into buffers of any size: a fresh one, and one that a large request has left without memory.
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
				err := e.read(httptest.NewRecorder(), r)
				want := body[:min(size, limit+1)]
				if got := string(in); err != nil || got != want {
					t.Errorf("capacity %d, a body of %d bytes, length %d: %d bytes, %v", capacity, size, length, len(got), err)
				}
			}
		}
	}
}

// wary is a body that refuses to be read into no room, which would never end.
type wary struct{ io.Reader }

func (w wary) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, errors.New("there is no room to read into")
	}
	return w.Reader.Read(p)
}

// TestSlowBodies: a body that does not arrive in time is not waited for, over every protocol. The time ends with the
// body: an agent may take longer.
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
				body := message("rpc", "start", "t1", "hello")
				for _, late := range []bool{false, true} {
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
					res, err := transport.RoundTrip(r)
					if err != nil {
						t.Fatalf("late %v: %v", late, err)
					}
					waited := time.Since(begun)
					rest.Close() // the client ends with the body of the request
					io.Copy(io.Discard, res.Body)
					res.Body.Close()
					if res.StatusCode != want || waited != took {
						t.Errorf("late %v: answered with %d after %v, want %d after %v",
							late, res.StatusCode, waited, want, took)
					}
				}
				transport.CloseIdleConnections()
				server.Close()
				serving.Wait()
			})
		})
	}
}
