// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// everyone lets all dialects call.
func everyone(h *setup) {
	h.Callers = []translate.Server{aip.ServerV2("partner"), aip.Server(), a2a.V1Server(false), a2a.V1RESTServer(false),
		a2a.V03Server(false), a2a.LegacyServer(false)}
}

// call posts a JSON-RPC request to the mount point.
func (g *gate) call(method, params string, header ...string) (*http.Response, string) {
	g.t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"q","method":%q,"params":%s}`, method, params)
	req, err := http.NewRequestWithContext(g.t.Context(), http.MethodPost, g.server.URL+"/agents/one",
		strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := g.server.Client().Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return res, string(content)
}

// TestResumeAtTheEnd: a caller resuming after the last event of an ended stream learns that there is nothing, and does
// not wait for tomorrow's events of the task.
func TestResumeAtTheEnd(t *testing.T) {
	g := open(t, everyone)
	for _, text := range []string{"hello", "ask"} {
		_, first := g.call("tasks/sendSubscribe",
			fmt.Sprintf(`{"id":%q,"message":{"role":"user","parts":[{"type":"text","text":%q}]}}`, text, text))
		if !strings.Contains(first, `"final":true`) {
			t.Fatalf("the stream begins with %s", first)
		}
		last := first[strings.LastIndex(first, "id: ")+len("id: "):]
		last, _, _ = strings.Cut(last, "\n")
		res, again := g.call("tasks/resubscribe", fmt.Sprintf(`{"id":%q}`, text), "Last-Event-ID", last)
		if res.Header.Get("Content-Type") != "text/event-stream" || strings.Contains(again, "data:") ||
			!strings.Contains(again, "no more events") {
			t.Errorf("behind event %s of %q there is %s %q", last, text, res.Header.Get("Content-Type"), again)
		}
	}
}

// TestRefusedStreams: a caller accepting only a stream gets the refusal in a stream, if the dialect allows it.
func TestRefusedStreams(t *testing.T) {
	g := open(t, everyone)
	const none, events = `{"id":"none"}`, "text/event-stream"
	for _, tc := range []struct {
		method, params, accept string
		streamed               bool
	}{
		{"SubscribeToTask", none, events, true},
		{"SubscribeToTask", none, "", false},
		{"SubscribeToTask", none, "application/json, " + events, false},
		{"SubscribeToTask", none, "*/*, " + events, false},
		{"SendStreamingMessage", `{"message":1}`, events, true},
		{"tasks/resubscribe", none, events, true},
		{"message/stream", `{"message":1}`, events, true},
		{"GetTask", none, "application/json", false},
		{"stream", `{"message":1}`, events, false},
	} {
		var header []string
		if tc.accept != "" {
			header = []string{"Accept", tc.accept}
		}
		res, body := g.call(tc.method, tc.params, header...)
		rest, streamed := strings.CutPrefix(body, "data: ")
		if res.StatusCode != http.StatusOK || streamed != tc.streamed ||
			streamed != (res.Header.Get("Content-Type") == events) ||
			streamed != strings.HasSuffix(body, "\n\n") ||
			!strings.HasPrefix(rest, `{"jsonrpc":"2.0","id":"q","error":{`) {
			t.Errorf("%s for %q is answered with %s, %s: %q", tc.method, tc.accept, res.Status,
				res.Header.Get("Content-Type"), body)
		}
	}
}
