// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/internal/freeport"
	"github.com/aip-gateway/aip-gateway/internal/legacyagent"
)

// TestDocsMetrics holds the table of docs/operations.md against what a gateway exports that has had calls.
func TestDocsMetrics(t *testing.T) {
	agent := legacyagent.New(legacyagent.Options{})
	defer agent.Close()
	up := httptest.NewServer(agent)
	defer up.Close()
	down := fmt.Sprint("http://127.0.0.1:", freeport.Closed(t))
	port, err := freeport.Take()
	if err != nil {
		t.Fatal(err)
	}
	here := fmt.Sprint("http://127.0.0.1:", port)
	pki, err := devpki.Make(devpki.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer caddy.Stop()
	serve(t, fmt.Sprintf(`{
	admin off
	aip {
		store pebble %s
		amp %s
		revocation {
			crl missing.crl
		}
	}
}
%s {
	metrics /metrics
	aip_gateway /up a2a/legacy %s {
		identity off
		aic 10001000011K912345E789ABCDEF2353
		policy {
			allow
		}
		quota all {
			calls 100/s
		}
		callers aip aip/2
		group {
			inbox amqps://localhost/acps
			tls {
				ca %s
				client_cert %s %s
			}
		}
	}
	aip_gateway /aac a2a/legacy %s {
		identity optional
		aic 10001000011K94ZH3VDXLP4S5EB63614
		aac {
			issuer https://sts.example.com
			require
		}
	}
	aip_gateway /down {
		identity off
		agent a2a/legacy %s {
			retry_for 0
		}
	}
}
`, t.TempDir(), t.TempDir(), here, up.URL, pki.CA.Cert, pki.Leader.Cert, pki.Leader.Key, up.URL, down))
	for _, path := range []string{"/up", "/aac", "/down"} {
		res, err := http.Post(here+path, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"rpc",`+
			`"params":{"message":{"id":"m","senderId":"l","command":"start","taskId":"t","dataItems":[]}}}`))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	res, err := http.Get(here + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(exported(string(body)), documented(t)); diff != "" {
		t.Errorf("docs/operations.md does not have the metrics of the code (-code +page):\n%s", diff)
	}
}

// serve runs a configuration until caddy.Stop.
func serve(t *testing.T, caddyfile string) {
	t.Helper()
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
}

// exported returns the type and the labels of each metric of ours, by its name.
func exported(text string) map[string]string {
	all := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (aip_\S+) (\S+)$`).FindAllStringSubmatch(text, -1) {
		name := m[1]
		sample := regexp.MustCompile(`(?m)^` + name + `(?:_count)?(?:\{(.*)\})? `).FindStringSubmatch(text)
		var labels []string
		if sample != nil {
			for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(sample[1], -1) {
				labels = append(labels, label[1])
			}
		}
		slices.Sort(labels)
		all[name] = m[2] + " " + strings.Join(labels, " ")
	}
	return all
}

// documented is exported for the page.
func documented(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, row := range tables(pages(t)["docs/operations.md"], "| metric | labels | means |") {
		labels := inQuotes(row[1])
		slices.Sort(labels)
		for _, name := range inQuotes(row[0]) {
			kind := "gauge"
			switch {
			case strings.HasSuffix(name, "_total"):
				kind = "counter"
			case strings.HasPrefix(row[2], "histogram"):
				kind = "histogram"
			}
			all[name] = kind + " " + strings.Join(labels, " ")
		}
	}
	return all
}
