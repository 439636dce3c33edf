// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// TestWebhook checks the requests of the commands about webhooks, and their output: never the token.
func TestWebhook(t *testing.T) {
	t.Chdir(t.TempDir())
	var result, sent string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		sent = r.URL.Path + " " + gjson.GetBytes(body, "method").Str + " " + gjson.GetBytes(body, "params").Raw
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, gjson.GetBytes(body, "id").Raw, result)
	}))
	defer server.Close()
	const one = `{"id":"w1","taskId":"t1","url":"https://hooks.example.com/a","token":"secret"}`
	for _, tt := range []struct {
		args   []string
		sent   string
		result string
		want   commandResult
	}{
		{[]string{"set", "--token", "secret", "https://hooks.example.com/a"},
			`/notification/set notification/set {"taskId":"t1","url":"https://hooks.example.com/a","token":"secret"}`,
			`"result":` + one, commandResult{0, "webhook   w1  https://hooks.example.com/a\n", ""}},
		{[]string{"get"}, `/notification/get notification/get {"taskId":"t1"}`, `"result":[` + one + `]`,
			commandResult{0, "webhook   w1  https://hooks.example.com/a\n", ""}},
		{[]string{"get"}, `/notification/get notification/get {"taskId":"t1"}`, `"result":[]`,
			commandResult{0, "webhook   none\n", ""}},
		{[]string{"delete", "--webhook", "w1"},
			`/notification/delete notification/delete {"taskId":"t1","notificationConfigId":"w1"}`,
			`"result":{"success":true}`, commandResult{0, "webhook   deleted\n", ""}},
		{[]string{"get", "--webhook", "w2"},
			`/notification/get notification/get {"taskId":"t1","notificationConfigId":"w2"}`, notFound,
			commandResult{2, "", "Error: the Partner answered -32001 Task not found\n  details: It may have ended.\n" +
				"  max: [1,2]\n  taskId: task-1\n"}},
	} {
		result = tt.result
		args := append([]string{"call", server.URL, "webhook", tt.args[0], "--task", "t1", "--sender", "L"}, tt.args[1:]...)
		if diff := cmp.Diff(tt.want, runAIP(t, args...)); diff != "" || sent != tt.sent {
			t.Errorf("%q sent %s (-want +got):\n%s", tt.args, sent, diff)
		}
		if got := runAIP(t, append(args, "--json")...); !strings.HasSuffix(got.Stdout, tt.result+"}\n") {
			t.Errorf("%q with --json: %+v", tt.args, got)
		}
	}
}

// TestDeliveryIsShown checks the output of caddy aip deliveries show.
func TestDeliveryIsShown(t *testing.T) {
	page := `{"deliveries":[{"id":"msg_1","status":"failing","partner":"P","leader":"L","task":"t1","webhook":"w1",` +
		`"endpoint":"https://hooks.example.com:443","event":3,"state":"working","at":"2025-09-01T12:00:00+08:00",` +
		`"attempts":2,"last_status":503,"recent_attempts":[` +
		`{"at":"2025-09-01T12:00:01+08:00","duration_ms":15000,"error":"the receiver did not answer \u001b[2J"},` +
		`{"at":"2025-09-01T12:00:17.25+08:00","duration_ms":12,"status":503}]}]}` + "\n"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RequestURI() == "/aip/deliveries?id=msg_1" {
			io.WriteString(w, page)
			return
		}
		io.WriteString(w, `{"deliveries":[]}`)
	}))
	defer server.Close()
	show := func(args ...string) commandResult {
		return runAIP(t, append([]string{"deliveries", "show", "--address", strings.TrimPrefix(server.URL, "http://")},
			args...)...)
	}
	want := commandResult{Stdout: `id        msg_1
status    failing
task      t1
event     3
state     working since 2025-09-01T12:00:00+08:00
agent     P
leader    L
webhook   w1
endpoint  https://hooks.example.com:443
attempts  2
last      HTTP 503
next      -

ATTEMPT                       DURATION  RESULT
2025-09-01T12:00:01+08:00     15s       the receiver did not answer �[2J
2025-09-01T12:00:17.25+08:00  12ms      HTTP 503
`}
	if diff := cmp.Diff(want, show("msg_1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(commandResult{Stdout: page}, show("msg_1", "--json")); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
	got := show("msg_2")
	if got.Status != 1 || !strings.Contains(got.Stderr, "no notification with the webhook-id msg_2") {
		t.Errorf("a delivery that does not exist: %+v", got)
	}
}
