// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestStoreIsUnmounted removes the directory of the store from a running gateway, as an unmounted volume does. Starts
// are refused as STORE_UNAVAILABLE, and work again without a restart when the directory is back. Tasks that were
// answered before are there, and running tasks end as their agents report, also for their webhooks.
func TestStoreIsUnmounted(t *testing.T) {
	t.Parallel()
	ends := make(chan struct{})
	agent := newFakeAgent(t, func(w http.ResponseWriter, r *http.Request, h heard) {
		text := h.Params.Message.Parts[0].Text
		if text == "long" {
			select {
			case <-ends:
			case <-r.Context().Done():
			}
		}
		writeTask(w, h, "completed", text)
	})
	s := newSite(t)
	dir := filepath.Join(s.dir, "store")
	s.start(config{
		store: "store pebble " + dir, notify: here,
		handle: "aip_gateway a2a/legacy " + agent.url + " {\ncallers aip a2a\n}",
	})
	caller, sink := leaderOf(t, s.url()), newSink(t)
	caller.setHook(hook{URL: sink.origin() + "/hook", Token: "secret", TaskID: "runs"})
	runs := startCall("runs", "long")
	runs.Terms.Response = time.Millisecond
	caller.do(runs)
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	var refusal *leader.Error
	stored := 0
	for ; refusal == nil && stored < 1000; stored++ { // the files that are open take some
		_, err := caller.try(startCall(fmt.Sprint("big-", stored), strings.Repeat("big ", 20_000)))
		if err != nil && !errors.As(err, &refusal) {
			t.Fatal(err)
		}
	}
	stored-- // but for the last one
	if refusal == nil || refusal.Code != -32603 || data(t, refusal.Data)["reason"] != "STORE_UNAVAILABLE" {
		t.Errorf("a start without a store: %+v, want -32603 with the reason STORE_UNAVAILABLE", refusal)
	}
	message := []byte(`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}}`)
	res, body := caller.post("/message:send", message, "A2A-Version", "1.0")
	if got := res.Header.Get("Retry-After"); res.StatusCode != 503 || got != "5" ||
		!strings.Contains(string(body), `"STORE_UNAVAILABLE"`) {
		t.Errorf("a message by REST without a store: %d, Retry-After %q: %s", res.StatusCode, got, body)
	}
	caller.get("runs")
	close(ends)
	noError(t, os.Rename(dir+".away", dir)) // no attempt to open the store has made another one
	eventually(t, "the store works again", func() bool {
		_, err := caller.try(startCall("after", "hello"))
		return err == nil
	})
	caller.rests("after")
	got := caller.rests("runs")
	checkHistory(t, got)
	if diff := cmp.Diff(answered{State: task.AwaitingCompletion, Products: []string{"long"}}, of(got)); diff != "" {
		t.Errorf("the task that ran (-want +got):\n%s", diff)
	}
	sink.waitForChanges("/hook", got.StatusHistory)
	for i := range stored {
		checkHistory(t, caller.rests(fmt.Sprint("big-", i)))
	}
}
