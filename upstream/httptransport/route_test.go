// SPDX-License-Identifier: Apache-2.0

package httptransport_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/agentapi"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// TestPaths: an operation with a path of its own is sent there, on the host of the URL, and others to the URL.
func TestPaths(t *testing.T) {
	var asked string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.RequestURI()
	}))
	defer srv.Close()
	for path, want := range map[string]string{
		"/stop":          "POST /stop",
		"/a%20b/c?d=e#f": "POST /a%20b/c?d=e",
		"/../stop":       "POST /stop",
	} {
		transport, err := httptransport.New(httptransport.Config{
			URL: srv.URL + "/api/process?key=1", Codec: agentapi.Client(agentapi.Options{CancelPath: "/stop"}),
			Paths: map[translate.Operation]string{translate.Cancel: path},
		})
		if err != nil {
			t.Fatal(err)
		}
		for op, want := range map[translate.Operation]string{
			translate.Cancel: want, translate.SendStream: "POST /api/process?key=1",
		} {
			routes := transport.Routes(op)
			x, err := routes[0].Open(t.Context(), &upstream.Request{
				Operation: op, Body: []byte("{}"), IdleTimeout: time.Minute,
			})
			if err == nil {
				err = x.Begin()
			}
			if err != nil || len(routes) != 1 {
				t.Fatalf("%d routes, %v", len(routes), err)
			}
			x.Close(nil)
			if asked != want {
				t.Errorf("operation %d is sent by %s, want %s", op, asked, want)
			}
		}
		transport.Close()
	}
	for _, path := range []string{"", "stop", "//other/stop", "http://other/stop", "?a", "/%zz"} {
		if _, err := httptransport.ParsePath(path); upstream.ReasonOf(err) != upstream.InvalidURL {
			t.Errorf("%q is taken: %v", path, err)
		}
	}
}
