// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/legacyagent"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/tidwall/gjson"
)

// TestACSIsRegistered: the ACS of a Partner is exported, found valid, and saved as the one that is registered. It keeps
// its time and ETag when the gateway is killed and started again. When it changes, the log, doctor and diff say where.
func TestACSIsRegistered(t *testing.T) {
	t.Parallel()
	sample := legacyagent.New(legacyagent.Options{})
	agent := httptest.NewServer(sample)
	t.Cleanup(func() {
		agent.Close()
		sample.Close()
	})
	s := site.New(t)
	pki := site.Certificates(t)
	settings := func(department, more string) site.Config {
		return site.Config{
			Handle: "aip_gateway a2a/legacy " + agent.URL + " {\n\t\taic " + string(pki.Server.AIC) +
				"\n\t\tpublic_url " + s.URL() + "/\n\t\tcard {\n\t\t\torganization Example\n\t\t\torganization_url " +
				"https://example.com\n\t\t\tlicense L\n\t\t\tca_challenge_url https://example.com/c\n\t\t\tdepartment " +
				department + "\n\t\t\t" + more + "\n\t\t}\n\t}",
		}
	}
	registered := s.InDir("registered.json")
	withRegistered := "registered " + registered
	s.Start(settings("Travel", ""))
	flags := []string{"--cert", pki.Leader.Cert, "--key", pki.Leader.Key, "--ca", pki.CA.Cert}
	acs := func(args ...string) (int, string, string) {
		return s.Caddy(append(append([]string{"aip", "acs"}, args...), flags...)...)
	}
	status, exported, stderr := acs("export", s.URL())
	if status != 0 || stderr != "" || gjson.Get(exported, "aic").Str != string(pki.Server.AIC) {
		t.Fatalf("export: %d %s %s", status, exported, stderr)
	}
	if err := os.WriteFile(registered, []byte(exported), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, stdout, stderr := acs("validate", registered); status != 0 || stdout+stderr != "" {
		t.Errorf("validate: %d %s %s", status, stdout, stderr)
	}
	served := func(path string, header ...string) *http.Response {
		t.Helper()
		res, _ := site.LeaderOf(t, s.URL()).Exchange(http.MethodGet, path, nil, header...)
		return res
	}
	tag := served("/.well-known/acs.json").Header.Get("ETag")
	if other := served("/agent_spec.json").Header.Get("ETag"); tag == "" || other != tag {
		t.Errorf("the places have %q and %q", tag, other)
	}

	s.Kill()
	next := time.Now().Truncate(time.Second).Add(time.Second)
	site.Eventually(t, "another second", func() bool { return time.Now().After(next) })
	s.Start(settings("Travel", withRegistered))
	for _, path := range []string{"/.well-known/acs.json", "/agent_spec.json"} {
		if res := served(path, "If-None-Match", tag); res.StatusCode != http.StatusNotModified {
			t.Errorf("%s after a crash: %s %v, want the ETag %s", path, res.Status, res.Header, tag)
		}
	}
	if status, stdout, stderr := acs("diff", s.URL(), registered); status != 0 || stdout+stderr != "" {
		t.Errorf("diff of the same: %d %s %s", status, stdout, stderr)
	}
	status, found := s.Doctor(settings("Travel", withRegistered))
	if !slices.Contains(found, "ok acs: it is the one that is registered") {
		t.Errorf("doctor of the same: %d %q", status, found)
	}

	const warning = "the ACS that is served is not the one that is registered"
	if strings.Contains(s.Out.String(), warning) {
		t.Errorf("it warns of the same: %s", s.Out.String())
	}
	changed := settings("Sales", withRegistered)
	if refused := s.Reload(changed); refused != "" {
		t.Fatal(refused)
	}
	s.WaitFor(t, warning) // although nobody asks for the ACS
	status, stdout, _ := acs("diff", s.URL(), registered)
	if status != 1 || stdout != "provider.department: served \"Sales\", registered \"Travel\"\n" {
		t.Errorf("diff: %d %s", status, stdout)
	}
	if res := served("/.well-known/acs.json", "If-None-Match", tag); res.StatusCode != http.StatusOK {
		t.Errorf("another content has the same ETag: %s", res.Status)
	}
	status, found = s.Doctor(changed)
	if status != 0 || !slices.ContainsFunc(found, func(f string) bool {
		return strings.HasPrefix(f, "warning acs: it is not the one that is registered: they differ at provider.department; ")
	}) {
		t.Errorf("doctor: %d %q", status, found)
	}
	if kept, err := filepath.Glob(s.InDir("share/caddy/aip/acs/*.json")); err != nil || len(kept) != 1 {
		t.Errorf("the storage has %v: %v", kept, err)
	}
}
