// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// streamless is an agent of A2A v0.1 that has no streams: it stores a task that it is sent for one, and fails.
type streamless struct {
	card  string // the capabilities in its card
	mu    sync.Mutex
	asked []string
}

func (a *streamless) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		if strings.HasSuffix(r.URL.Path, "/agent.json") {
			fmt.Fprintf(w, `{"name":"n","url":"http://%s/","version":"1","capabilities":%s,"skills":[]}`, r.Host, a.card)
			return
		}
		http.NotFound(w, r)
		return
	}
	var h heard
	if body, err := io.ReadAll(r.Body); err != nil || json.Unmarshal(body, &h) != nil {
		return
	}
	a.mu.Lock()
	a.asked = append(a.asked, strings.TrimPrefix(h.Method, "tasks/"))
	a.mu.Unlock()
	switch h.Method {
	case "tasks/sendSubscribe":
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"Internal error"}}`)
	case "tasks/send":
		writeTask(w, h, "completed", "done")
	default:
		writeTask(w, h, "submitted", "")
	}
}

// TestAgentsWithoutStreams proves that Leaders have streams of agents of A2A v0.1 that have none, whether their cards
// say so or not, and that such an agent does the work once.
func TestAgentsWithoutStreams(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		card  string
		asked []string
	}{
		"its card says so":         {`{"streaming":false}`, []string{"send", "send"}},
		"its card says nothing":    {`{}`, []string{"send", "send"}},
		"its card does not say so": {`{"streaming":true}`, []string{"sendSubscribe", "send", "send"}},
	} {
		at := &streamless{card: tc.card}
		server := httptest.NewServer(at)
		t.Cleanup(server.Close)
		s := serve(t, config{store: "store memory",
			handle: "aip_gateway a2a/legacy " + server.URL + " {\ncallers aip a2a/legacy\n}"})
		leader := leaderOf(t, s.url())
		for _, id := range []string{"one", "two"} {
			_, events := leader.post("", []byte(`{"jsonrpc":"2.0","id":1,"method":"tasks/sendSubscribe","params":{"id":"`+id+
				`","message":{"role":"user","parts":[{"type":"text","text":"hello"}]}}}`))
			if got := string(events); !strings.Contains(got, `"text":"done"`) || !strings.Contains(got, `"final":true`) {
				t.Errorf("%s: the stream of %s is %s", name, id, got)
			}
		}
		if _, card := leader.request("GET", "/.well-known/agent.json", nil); !gjson.GetBytes(card,
			"capabilities.streaming").Bool() {
			t.Errorf("%s: the gateway's card says that it has no streams: %s", name, card)
		}
		if diff := cmp.Diff(tc.asked, at.asked); diff != "" {
			t.Errorf("%s: what was asked (-want +got):\n%s", name, diff)
		}
	}
}
