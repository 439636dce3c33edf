// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/acps/adp"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// TestCheckDiscovery: each discovery server is asked for each AIC once, and one that does not answer says why.
func TestCheckDiscovery(t *testing.T) {
	p := newAlone(t, nil)
	p.refuses(map[string]string{
		"GET /aip/discovery/check": "Conflict: no discovery server is configured; write discovery <url> in the global " +
			"option aip",
	})
	odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") }))
	defer odd.Close()
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer hangs.Close()
	p.has.Servers = []adp.Client{{URL: odd.URL, HTTP: odd.Client()},
		{URL: hangs.URL, HTTP: &http.Client{Timeout: time.Millisecond}}}
	var got adminapi.DiscoveredList
	p.ask("GET", adminapi.CheckDiscovery, "", &got)
	want := adminapi.DiscoveredList{Agents: []adminapi.Discovered{
		{Server: odd.URL, Partner: "A.1", State: adminapi.NotAsked, Reason: adp.ErrUnclear.Error() + ": status 200"},
		{Server: hangs.URL, Partner: "A.1", State: adminapi.NotAsked, Reason: "it has not answered within 1ms"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
