// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLoop has calls follow each other on one connection, and names the server of each.
func TestLoop(t *testing.T) {
	const std, loop = "*http.response", "*takeover.response"
	everyWriter := func(http.ResponseWriter) bool { return true }
	for name, c := range map[string]struct {
		passes func(http.ResponseWriter) bool
		header http.Header
		wraps  bool
		want   []string
	}{
		"on":           {everyWriter, nil, false, []string{std, std, loop, loop}},
		"off":          {nil, nil, false, []string{std, std, std, std}},
		"other writer": {func(http.ResponseWriter) bool { return false }, nil, false, []string{std, std, std, std}},
		"expect":       {everyWriter, http.Header{"Expect": {"100-continue"}}, false, []string{std, std, std, std}},
		"wrapped":      {everyWriter, nil, true, []string{std, std, std, std}},
	} {
		t.Run(name, func(t *testing.T) {
			h := openSite(t, func(s *setup) {
				s.Partner.Agent, s.front.Loop = spoken{pieces: make(chan string)}, c.passes
			})
			var served []string
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				served = append(served, fmt.Sprintf("%T", w))
				h.ServeHTTP(w, r)
			}))
			server.Config.ConnContext = WithConnection
			if c.wraps {
				server.Listener = wrapping{server.Listener}
			}
			server.Start()
			defer closeServer(server)
			for range c.want {
				sent := strings.NewReader(message("rpc", "get", "none", ""))
				req, err := http.NewRequest(http.MethodPost, server.URL+"/rpc", sent)
				if err != nil {
					t.Fatal(err)
				}
				for name, v := range c.header {
					req.Header[name] = v
				}
				res, err := server.Client().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(res.Body)
				if err != nil || !strings.Contains(string(body), "error") {
					t.Fatalf("answered %q, %v", body, err)
				}
				res.Body.Close()
			}
			if diff := cmp.Diff(c.want, served); diff != "" {
				t.Errorf("who served the calls (-want +got):\n%s", diff)
			}
		})
	}
}

// wrapping is a listener with connections possibly read ahead, as one for the PROXY protocol.
type wrapping struct{ net.Listener }

// Accept implements net.Listener.
func (l wrapping) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return struct{ net.Conn }{c}, err
}
