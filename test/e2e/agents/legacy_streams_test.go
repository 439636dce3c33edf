// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
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
	var h site.Heard
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
		site.WriteTask(w, h, "completed", "done")
	default:
		site.WriteTask(w, h, "submitted", "")
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
		s := site.Serve(t, site.Config{Store: "store memory",
			Handle: "aip_gateway a2a/legacy " + server.URL + " {\ncallers aip a2a/legacy\n}"})
		s.KnowsCard(server.URL)
		leader := site.LeaderOf(t, s.URL())
		for _, id := range []string{"one", "two"} {
			_, events := leader.Post("", []byte(`{"jsonrpc":"2.0","id":1,"method":"tasks/sendSubscribe","params":{"id":"`+id+
				`","message":{"role":"user","parts":[{"type":"text","text":"hello"}]}}}`))
			if got := string(events); !strings.Contains(got, `"text":"done"`) || !strings.Contains(got, `"final":true`) {
				t.Errorf("%s: the stream of %s is %s", name, id, got)
			}
		}
		if _, card := leader.Exchange("GET", "/.well-known/agent.json", nil); !gjson.GetBytes(card,
			"capabilities.streaming").Bool() {
			t.Errorf("%s: the gateway's card says that it has no streams: %s", name, card)
		}
		if diff := cmp.Diff(tc.asked, at.asked); diff != "" {
			t.Errorf("%s: what was asked (-want +got):\n%s", name, diff)
		}
	}
}
