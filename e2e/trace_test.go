// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
)

// TestTrace proves that the caller's trace continues at the agent, with and without spans of the gateway's own.
func TestTrace(t *testing.T) {
	t.Parallel()
	const traceID, spanID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	agent := newFakeAgent(t, nil)
	// Spans go out as protobuf, in which ids and names stand as they are.
	var spans struct {
		sync.Mutex
		bytes.Buffer
	}
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		spans.Lock()
		defer spans.Unlock()
		io.Copy(&spans, r.Body)
	}))
	t.Cleanup(collector.Close)
	s := newSite(t)
	s.env = []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL,
		"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
		"OTEL_BSP_SCHEDULE_DELAY=50",
	}
	s.start(config{handle: `
	handle_path /plain* {
		aip_gateway a2a/legacy ` + agent.url + `
	}
	handle_path /traced* {
		tracing {
			span call
		}
		aip_gateway a2a/legacy ` + agent.url + `
	}`})
	for _, tc := range []struct {
		mount   string
		newSpan bool
	}{{"/plain", false}, {"/traced", true}} {
		leader := leaderOf(t, s.url()+tc.mount)
		_, body := leader.post(
			"/rpc",
			[]byte(startBody(leader.Sender, "task-"+tc.mount)),
			"traceparent",
			"00-"+traceID+"-"+spanID+"-01",
		)
		if !bytes.Contains(body, []byte(`"awaiting-completion"`)) {
			t.Fatalf("%s", body)
		}
		asked := agent.requests("tasks/send")
		got := asked[len(asked)-1].header.Get("traceparent")
		m := regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-01$`).FindStringSubmatch(got)
		if m == nil || m[1] != traceID || (m[2] != spanID) != tc.newSpan {
			t.Errorf(
				"%s: the agent was given the traceparent %q, want that of %s, with a new span: %t",
				tc.mount,
				got,
				traceID,
				tc.newSpan,
			)
		}

		// Without a trace of the caller's, there is none where nothing traces.
		_, _ = leader.post("/rpc", []byte(startBody(leader.Sender, "untraced-"+tc.mount)))
		asked = agent.requests("tasks/send")
		if got := asked[len(asked)-1].header.Get("traceparent"); (got != "") != tc.newSpan || strings.Contains(got, traceID) {
			t.Errorf("%s: without a caller's trace the agent was given %q", tc.mount, got)
		}
	}
	id, err := hex.DecodeString(traceID)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the collector gets the spans", func() bool {
		spans.Lock()
		defer spans.Unlock()
		b := spans.Bytes()
		return bytes.Contains(b, id) && bytes.Contains(b, []byte("aip.call")) && bytes.Contains(b, []byte("aip.run")) &&
			bytes.Contains(b, []byte("tasks/send"))
	})
	spans.Lock()
	defer spans.Unlock()
	if bytes.Contains(spans.Bytes(), []byte("hello")) {
		t.Error("a span holds the payload")
	}
}

// TestLogs proves that what callers and agents say to each other stays out of the log, whatever goes wrong.
func TestLogs(t *testing.T) {
	t.Parallel()
	const payload, product, token = "payload-5d1f", "product-77ae", "token-c3b9"
	var bad sync.Map // ids of tasks, and how the agent answers of them
	agent := newFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h heard) {
		for _, how := range []string{"fail", "break", "garble"} {
			if strings.Contains(string(h.body), "please "+how) {
				bad.Store(h.Params.ID, how)
			}
		}
		switch how, _ := bad.Load(h.Params.ID); how {
		case "fail":
			writeTask(w, h, "failed", product)
		case "break":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":{"status":{"state":"completed"},"artifacts":%q}}`, product)
		case "garble":
			fmt.Fprint(w, product)
		default:
			writeTask(w, h, "completed", product)
		}
	})
	s := serve(t, config{options: "debug", handle: `aip_gateway {
		agent a2a/legacy ` + agent.url + ` {
			header_up Authorization "Bearer ` + token + `"
			timeout 1s
		}
	}`})
	leader := leaderOf(t, s.url())
	leader.start("good", payload)
	leader.goOn("good", payload)
	leader.complete("good")
	for _, what := range []string{"fail", "break", "garble"} {
		leader.start(what, payload+" please "+what)
		if got := leader.rests(what); got.Status.State != task.Failed {
			t.Errorf("%s: %+v, want failed", what, of(got))
		}
	}
	leader.refused(commandCall(task.Get, "unknown", payload))
	for _, body := range []string{payload, `{"jsonrpc":"2.0","id":"` + payload + `","method":"` + payload + `"}`,
		strings.Replace(startBody(leader.Sender, "x"), `"hello"`, `"`+payload+"\xff", 1),
		strings.Replace(startBody("another", "x"), `hello`, payload, 1)} {
		leader.post("/rpc", []byte(body))
	}
	s.stop(t) // then all of the log is here
	log := s.out.String()
	for _, word := range []string{payload, product, token} {
		for line := range strings.Lines(log) {
			if strings.Contains(line, word) {
				t.Errorf("the log has %s: %s", word, line)
			}
		}
	}
	if !strings.Contains(log, `"level":"debug"`) {
		t.Error("nothing was logged at the level debug, so this test proves little")
	}
	if !strings.Contains(log, "a caller was turned away") {
		t.Error("the log does not show a caller with a wrong senderId")
	}
}
