// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/aip-gateway/aip-gateway/internal/freeport"
)

// TestDocsIdentifyMount runs the example of aip_identify before a mount in a handle_path: strangers may get tasks only.
func TestDocsIdentifyMount(t *testing.T) {
	examples := caddyfiles(pages(t)["docs/configuration/directives.md"])
	i := slices.IndexFunc(examples, func(s string) bool {
		return strings.Contains(s, "aip_identify") && strings.Contains(s, "handle_path")
	})
	if i < 0 {
		t.Fatal("there is no such example")
	}
	port, err := freeport.Take()
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("127.0.0.1:%d", port)
	site := strings.NewReplacer("agents.example.com {", "http://"+at+" {\nbind 127.0.0.1").Replace(examples[i])
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte("{\nadmin off\naip {\nstore memory\n}\n}\n"+site),
		map[string]any{"filename": "Caddyfile"})
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(adapted, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { caddy.Stop() })
	for command, want := range map[string]int{"get": http.StatusOK, "start": http.StatusForbidden,
		"cancel": http.StatusForbidden} {
		body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "rpc", "params": map[string]any{
			"message": map[string]any{"id": "m", "senderId": "stranger", "command": command, "taskId": "t",
				"dataItems": []any{map[string]any{"type": "text", "text": "hello"}}}}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.Post("http://"+at+"/planner/rpc", "application/json", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s of a stranger is answered %s, want %d: %s", command, res.Status, want, answer)
		}
	}
}
