// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// TestSampleAgentOverReload reloads while the sample agent streams. The task goes on, and is there afterwards.
func TestSampleAgentOverReload(t *testing.T) {
	addr := freeAddr(t)
	load := func(more string) {
		t.Helper()
		input := fmt.Sprintf("{\n\tadmin off\n\tauto_https off\n}\nhttp://%s {\n\taip_sample_agent\n%s}\n", addr, more)
		if err := caddy.Load([]byte(adapt(t, string(caddyfile.Format([]byte(input))))), true); err != nil {
			t.Fatal(err)
		}
		listensAlone(t, addr)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
		if n, _ := sampleAgents.References(sampleAgentKey); n != 0 {
			t.Errorf("after the stop, %d configurations have the agent", n)
		}
	})
	load("")
	call := func(method, more string) *http.Response {
		t.Helper()
		res, err := http.Post("http://"+addr, "application/json", strings.NewReader(fmt.Sprintf(
			`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"id":"t1"%s}}`, method, more)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
	stream := bufio.NewScanner(call("tasks/sendSubscribe",
		`,"message":{"parts":[{"type":"text","text":"stream 30 20"}]}`).Body)
	next := func(want string) {
		t.Helper()
		for stream.Scan() {
			if strings.Contains(stream.Text(), want) {
				return
			}
		}
		t.Fatalf("the stream ended without %s: %v", want, stream.Err())
	}
	next("chunk-1 ")
	load("\theader X-Reloaded yes\n")
	get := bufio.NewScanner(call("tasks/get", "").Body)
	if !get.Scan() || strings.Contains(get.Text(), "canceled") || strings.Contains(get.Text(), "error") {
		t.Errorf("after the reload: %s", get.Text())
	}
	next(`"completed"`)
}
