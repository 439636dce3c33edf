// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/base64"
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// The flags and the texts become the request to the Partner.
func TestCallRequest(t *testing.T) {
	var request gjson.Result
	var leader string
	url, _ := partnerAt(t, func(r gjson.Result, l string) string { request, leader = r, l; return awaiting })
	if err := os.WriteFile("notes.txt", []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := runAIP(t, "call", url, "start", "--task", "task-1", "--session", "session-1", "--data", `{"a":1}`, "--file",
		"notes.txt",
		"--file", "https://example.com/x.pdf", "--response-timeout", "2s", "--awaiting-input-timeout", "1m",
		"--awaiting-completion-timeout", "1h", "--max-products-bytes", "1000", "Plan", "three days")
	if got.Status != 0 {
		t.Fatalf("%+v", got)
	}
	message := request.Get("params.message")
	want := map[string]string{
		"command":    `"start"`,
		"senderRole": `"leader"`,
		"senderId":   `"` + leaderAIC + `"`,
		"taskId":     `"task-1"`,
		"sessionId":  `"session-1"`,
		"commandParams": `{"responseTimeout":2000,"awaitingInputTimeout":60000,"awaitingCompletionTimeout":3600000,` +
			`"maxProductsBytes":1000}`,
		"dataItems": `[{"type":"text","text":"Plan"},{"type":"text","text":"three days"},{"type":"data","data":{"a":1}},` +
			`{"type":"file","name":"notes.txt","mimeType":"text/plain","bytes":"` +
			base64.StdEncoding.EncodeToString([]byte("hello")) + `"},` +
			`{"type":"file","uri":"https://example.com/x.pdf"}]`,
	}
	said := map[string]string{}
	for key := range want {
		said[key] = message.Get(key).Raw
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if leader != leaderAIC {
		t.Errorf("Leader %s", leader)
	}

	got = runAIP(t, "call", url, "continue", "--task", "task-1", "--data", `{"a":1}`, "--metadata",
		`{"adk_type":"function_response"}`, "yes")
	const marked = `[{"type":"text","text":"yes","metadata":{"adk_type":"function_response"}},` +
		`{"type":"data","data":{"a":1},"metadata":{"adk_type":"function_response"}}]`
	if diff := cmp.Diff(marked, request.Get("params.message.dataItems").Raw); got.Status != 0 || diff != "" {
		t.Errorf("%+v (-want +got):\n%s", got, diff)
	}

	runAIP(t, "call", url, "start")
	first := request.Get("params.message")
	runAIP(t, "call", url, "start")
	second := request.Get("params.message")
	for key, form := range map[string]string{"id": `^msg-\w+$`, "taskId": `^task-\w+$`, "sessionId": `^session-\w+$`} {
		a, b := first.Get(key).Str, second.Get(key).Str
		if !regexp.MustCompile(form).MatchString(a) || a == b {
			t.Errorf("%s: %q, then %q", key, a, b)
		}
	}
}
