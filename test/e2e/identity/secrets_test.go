// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestSecretsAtRest has every secret of a gateway in use, and then reads all its files and its log.
//
// Promise: secrets in logs
// Promise: a user of the host reads the store
// Promise: URLs, tokens and credentials of webhooks, and notifications that are not delivered
// Promise: signing keys, `token_key`, credentials of the agent
// Promise: the configuration
func TestSecretsAtRest(t *testing.T) {
	t.Parallel()
	const (
		credential = "credential-of-the-agent-83bd01"
		said       = "what-the-leader-says-5e2b"
		made       = "what-the-agent-makes-77aa"
		token      = "token-of-the-webhook-20f1"
		kept       = "token-of-another-webhook-91c4"
		path       = "/path-of-the-webhook-66d0"
	)
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
		repeats := "nobody has the key " + h.Header.Get("X-API-Key")
		switch text := h.Params.Message.Parts; {
		case len(text) == 0:
			site.WriteError(w, h, -32001, repeats)
		case text[0].Text == "refuse":
			site.WriteError(w, h, -32602, repeats)
		case text[0].Text == said:
			site.WriteTask(w, h, "completed", made)
		case text[0].Text == "fail":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"id":%q,"status":{"state":"failed","message":{"role":"agent",`+
				`"parts":[{"type":"text","text":%q}]}}}}`, h.ID, h.Params.ID, repeats)
		}
	})
	up := site.NewSink(t)
	s := site.New(t)
	_, out, _ := s.Caddy("aip", "webhook-key", "--hmac")
	key := strings.Fields(out)[1]
	s.Env = []string{"AGENT_KEY=" + credential, "SIGNING_KEY=" + key}
	c := site.Config{Options: "debug", Notify: site.AllowHere + "signing_key {env.SIGNING_KEY}", Handle: `aip_gateway {
		agent a2a/legacy ` + agent.URL + ` {
			header_up X-API-Key {env.AGENT_KEY}
		}
	}`}
	s.Start(c)
	leader := site.LeaderOf(t, s.URL())
	ends := leader.SetHook(site.Hook{URL: up.Origin() + path, Token: token, TaskID: "a"})
	leader.Start("a", said)
	if got := leader.Complete("a"); got.Status.State != task.Completed {
		t.Fatalf("the task is %s", got.Status.State)
	}
	site.Eventually(t, "the end of the task is notified", func() bool { return len(up.Arrived(path)) > 0 })
	leader.SetHook(site.Hook{URL: up.Origin() + path, Token: kept, TaskID: "b"})
	leader.Start("b", said)
	for _, fails := range []string{"refuse", "fail"} {
		if got := leader.Start(fails, fails); !strings.Contains(fmt.Sprint(got.Status.DataItems), "has the key REDACTED") {
			t.Errorf("the reason is %+v", got.Status)
		}
	}

	exported := func() string {
		to := filepath.Join(s.Dir, "export.ndjson")
		defer os.Remove(to)
		s.StoreCommand(0, true, "export", "--output", to)
		text, err := os.ReadFile(to)
		site.NoError(t, err)
		return string(text)
	}
	leader.Granted("delete", map[string]string{"id": ends.ID, "taskId": "a"})
	site.Eventually(t, "a webhook that was deleted is no longer stored", func() bool {
		return !strings.Contains(exported(), token)
	})
	if !strings.Contains(exported(), kept) {
		t.Error("the other webhook is not stored")
	}
	dir := filepath.Join(s.Dir, "store")
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the store has the mode %v, %v", info.Mode(), err)
	}
	s.Stop(t) // then all of the log is here, and all of the store is in its files

	files := contents(s)
	for name, content := range files {
		for _, secret := range []string{credential, key} {
			if strings.Contains(content, secret) {
				t.Errorf("%s has %s", name, secret)
			}
		}
		if filepath.Base(name) == "autosave.json" && !strings.Contains(content, "{env.AGENT_KEY}") {
			t.Errorf("the configuration is not kept as it was loaded: %s", content)
		}
	}
	if len(files) < 5 {
		t.Errorf("there are only %d files", len(files))
	}
	for _, secret := range []string{credential, key, said, made, token, kept, path} {
		if strings.Contains(s.Out.String(), secret) {
			t.Errorf("the log has %s", secret)
		}
	}
}

// contents returns what the files in the directory of a site hold, by their names below it.
func contents(s *site.Site) map[string]string {
	s.T.Helper()
	files := make(map[string]string)
	site.NoError(s.T, filepath.WalkDir(s.Dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(name)
		files[strings.TrimPrefix(name, s.Dir)] = string(content)
		return err
	}))
	return files
}
