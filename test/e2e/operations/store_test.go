// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/go-cmp/cmp"
)

// TestStoreIsUnmounted removes the directory of the store from a running gateway, as an unmounted volume does. Starts
// are refused as STORE_UNAVAILABLE, and work again without a restart when the directory is back. Tasks that were
// answered before are there, and running tasks end as their agents report, also for their webhooks.
func TestStoreIsUnmounted(t *testing.T) {
	t.Parallel()
	ends := make(chan struct{})
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, r *http.Request, h site.Heard) {
		text := h.Params.Message.Parts[0].Text
		if text == "long" {
			select {
			case <-ends:
			case <-r.Context().Done():
			}
		}
		site.WriteTask(w, h, "completed", text)
	})
	s := site.New(t)
	dir := filepath.Join(s.Dir, "store")
	s.Start(site.Config{
		Store: "store pebble " + dir, Notify: site.AllowHere,
		Handle: "aip_gateway a2a/legacy " + agent.URL + " {\ncallers aip a2a\n}",
	})
	caller, sink := site.LeaderOf(t, s.URL()), site.NewSink(t)
	caller.SetHook(site.Hook{URL: sink.Origin() + "/hook", Token: "secret", TaskID: "runs"})
	runs := site.StartCall("runs", "long")
	runs.Terms.Response = time.Millisecond
	caller.Send(runs)
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	var refusal *leader.Error
	stored := 0
	for ; refusal == nil && stored < 1000; stored++ { // the files that are open take some
		_, err := caller.Try(site.StartCall(fmt.Sprint("big-", stored), strings.Repeat("big ", 20_000)))
		if err != nil && !errors.As(err, &refusal) {
			t.Fatal(err)
		}
	}
	stored-- // but for the last one
	if refusal == nil || refusal.Code != -32603 || site.Data(t, refusal.Data)["reason"] != "STORE_UNAVAILABLE" {
		t.Errorf("a start without a store: %+v, want -32603 with the reason STORE_UNAVAILABLE", refusal)
	}
	message := []byte(`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}}`)
	res, body := caller.Post("/message:send", message, "A2A-Version", "1.0")
	if got := res.Header.Get("Retry-After"); res.StatusCode != 503 || got != "5" ||
		!strings.Contains(string(body), `"STORE_UNAVAILABLE"`) {
		t.Errorf("a message by REST without a store: %d, Retry-After %q: %s", res.StatusCode, got, body)
	}
	site.Eventually(t, "a task can be read", func() bool { // not while the store is opened again
		_, err := caller.Try(site.CommandCall(task.Get, "runs"))
		return err == nil
	})
	close(ends)
	site.NoError(t, os.Rename(dir+".away", dir)) // no attempt to open the store has made another one
	site.Eventually(t, "the store works again", func() bool {
		_, err := caller.Try(site.StartCall("after", "hello"))
		return err == nil
	})
	caller.Rests("after")
	got := caller.Rests("runs")
	site.CheckHistory(t, got)
	if diff := cmp.Diff(site.Answered{State: task.AwaitingCompletion, Products: []string{"long"}},
		site.AnswerOf(got)); diff != "" {
		t.Errorf("the task that ran (-want +got):\n%s", diff)
	}
	sink.WaitForChanges("/hook", got.StatusHistory)
	for i := range stored {
		site.CheckHistory(t, caller.Rests(fmt.Sprint("big-", i)))
	}
}
