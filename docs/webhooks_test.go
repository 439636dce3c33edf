// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/dustin/go-humanize"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/caddymodule"
	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/notify/sign"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// TestDocsAdminRoutes holds the tables of the documents against the routes of the admin API.
func TestDocsAdminRoutes(t *testing.T) {
	var want []string
	for _, route := range new(caddymodule.Admin).Routes() {
		w := httptest.NewRecorder()
		// No route has this method, so each says which one it has.
		err := route.Handler.ServeHTTP(w, httptest.NewRequest("BREW", route.Pattern, nil))
		if refused := (caddy.APIError{}); !errors.As(err, &refused) || refused.HTTPStatus != http.StatusMethodNotAllowed {
			t.Errorf("%s: %v", route.Pattern, err)
		}
		want = append(want, w.Header().Get("Allow")+" "+route.Pattern)
	}
	var got []string
	for _, page := range []string{"docs/webhooks.md", "docs/groups.md", "docs/operations.md", "docs/policy.md",
		"docs/security.md", "docs/discovery.md", "docs/certificates.md", "docs/cluster.md"} {
		got = append(got, firstQuoted(t, page, "| route | takes | answers |")...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the documents do not have the routes of the admin API (-code +pages):\n%s", diff)
	}
}

// TestDocsWebhookHeaders has a webhook notified, and compares what arrives with the table of docs/webhooks.md.
func TestDocsWebhookHeaders(t *testing.T) {
	arrived := make(chan http.Header, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { arrived <- r.Header }))
	defer receiver.Close()
	key, err := sign.Parse(sign.Generate())
	if err != nil {
		t.Fatal(err)
	}
	store := replay.NewMemory(replay.Settings{})
	defer store.Close()
	engine, err := notify.NewProcess(nil).Open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	engine.Configure(notify.Config{
		Egress:   &egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Keys:     sign.Keys{key},
		Dialects: func(*task.Webhook, string) translate.Notifier { return aip.Server() },
	})
	const log = "tpartner\x00leader\x00task"
	hook := task.Webhook{URL: receiver.URL, Token: "secret", Dialect: "aip"}
	if _, err := engine.Set(t.Context(), log, hook, notify.At{}); err != nil {
		t.Fatal(err)
	}
	now := task.Task{ID: "task", Status: task.Status{State: task.Accepted, ChangedAt: time.Now()}}
	engine.Notify(t.Context(), log, []task.Change{{Seq: 1, Task: &now}})
	got := <-arrived
	delete(got, "Content-Length")

	table := make(http.Header)
	for _, name := range firstQuoted(t, "docs/webhooks.md", "| header | value |") {
		table.Set(name, "")
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(table))); diff != "" {
		t.Errorf("docs/webhooks.md does not have the headers of a notification (-code +page):\n%s", diff)
	}
}

// TestDocsWebhookDialects holds the table of docs/webhooks.md against how the dialects notify webhooks.
func TestDocsWebhookDialects(t *testing.T) {
	var got [][]string
	for _, row := range tables(pages(t)["docs/webhooks.md"],
		"| dialect | `Content-Type` | the token is in | the body is |") {
		got = append(got, append(append(inQuotes(row[0]), inQuotes(row[1])...), inQuotes(row[2])...))
	}
	var want [][]string
	for _, s := range []translate.Server{aip.Server(), aip.ServerV2(""), a2a.V1Server(false), a2a.V03Server(false),
		a2a.LegacyServer(false)} {
		row := []string{s.Name(), "", ""}[:1]
		for _, f := range s.NotificationHeader(&task.Webhook{Token: "secret"}) {
			if f.Name == "Content-Type" {
				row = slices.Insert(row, 1, f.Value)
			} else {
				row = append(row, f.Name)
			}
		}
		want = append(want, row)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/webhooks.md does not have the dialects of the code (-code +page):\n%s", diff)
	}
}

// TestDocsWebhookLimits holds the limits and the steps that docs/webhooks.md names against the constants of notify.
func TestDocsWebhookLimits(t *testing.T) {
	constants, steps := constantsOf(t, "notify/*.go", "notify/*/*.go")
	text := pages(t)["docs/webhooks.md"]
	limits := map[string]string{
		"webhooks of one task":                               "maxHooks",
		"tasks with webhooks of one Leader, at one Partner":  "maxOutboxes",
		"bytes of a URL":                                     "maxURL",
		"bytes of a token, or of credentials":                "maxSecret",
		"notifications kept for one task":                    "maxRecords",
		"their bytes":                                        "maxBytes",
		"dead letters of one webhook":                        "maxDead",
		"failed attempts of one notification":                "maxAttemptsKept",
		"the same, of all dead letters of one webhook":       "maxDeadAttemptsKept",
		"attempts with bodies, of one URL (`keep_bodies`)":   "maxExchanges",
		"bytes of a body":                                    "maxBody",
		"bytes of all bodies":                                "maxBodiesKept",
		"dead letters replayed by one call":                  "maxReplayed",
		"age of a dead letter":                               "keepDead",
		"age of a webhook without a task":                    "keepEmpty",
		"age of a webhook after its task and all deliveries": "keepEnded",
		"`Retry-After`":                                      "maxRetryAfter",
		"attempts at once at one endpoint, for one Leader":   "InFlightPerEndpoint",
		"attempts at once of one Leader":                     "leaderInFlight",
		"endpoints in memory, of one Leader":                 "leaderEndpoints",
		"endpoints in memory, of all Leaders":                "maxEndpoints",
		"endpoints disabled by name":                         "maxDisabled",
	}
	checkLimits(t, "docs/webhooks.md", limits, constants)

	sentence := regexp.MustCompile(`A failed attempt is retried after (.*?), each`).FindStringSubmatch(text)
	if sentence == nil {
		t.Fatal("docs/webhooks.md does not say when a failed attempt is retried")
	}
	var got []int64
	for _, s := range regexp.MustCompile(`,| and `).Split(sentence[1], -1) {
		d, err := time.ParseDuration(strings.ReplaceAll(strings.ReplaceAll(s, " ", ""), "min", "m"))
		if err != nil {
			t.Error(err)
		}
		got = append(got, int64(d))
	}
	if diff := cmp.Diff(steps, got); diff != "" {
		t.Errorf("docs/webhooks.md does not have the steps of the code (-code +page):\n%s", diff)
	}
}

// checkLimits holds the table of limits of a page against constants. limits has the name of the constant for each row.
func checkLimits(t *testing.T, page string, limits map[string]string, constants map[string]int64) {
	t.Helper()
	seen := 0
	for _, row := range tables(pages(t)[page], "| limit | value | at the limit |") {
		name, known := limits[row[0]]
		if !known {
			t.Errorf("%s has the limit %q, which nothing here knows", page, row[0])
			continue
		}
		seen++
		if got, ok := amount(row[1]); !ok || got != constants[name] {
			t.Errorf("%s says that %s is %s, the code that it is %d", page, row[0], row[1], constants[name])
		}
	}
	if seen != len(limits) {
		t.Errorf("%s has %d of %d limits", page, seen, len(limits))
	}
}

// amount reads a number, a duration in nanoseconds, or a size in bytes.
func amount(s string) (int64, bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, true
	}
	if d, err := caddy.ParseDuration(s); err == nil {
		return int64(d), true
	}
	n, err := humanize.ParseBytes(s)
	return int64(n), err == nil
}

// constantsOf returns the constants of files, and the steps between attempts if there are any.
func constantsOf(t *testing.T, patterns ...string) (constants map[string]int64, steps []int64) {
	t.Helper()
	var files []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	constants = make(map[string]int64)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			if list, ok := spec.Values[0].(*ast.CompositeLit); ok && spec.Names[0].Name == "steps" {
				for _, e := range list.Elts {
					n, _ := evaluate(e)
					steps = append(steps, n)
				}
			}
			if n, ok := evaluate(spec.Values[0]); ok {
				constants[spec.Names[0].Name] = n
			}
			return true
		})
	}
	return constants, steps
}

// evaluate computes a constant expression of numbers and of time's units.
func evaluate(e ast.Expr) (int64, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		n, err := strconv.ParseInt(e.Value, 0, 64)
		return n, err == nil
	case *ast.SelectorExpr:
		n, ok := map[string]time.Duration{
			"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
		}[e.Sel.Name]
		return int64(n), ok
	case *ast.BinaryExpr:
		x, ok1 := evaluate(e.X)
		y, ok2 := evaluate(e.Y)
		switch {
		case !ok1 || !ok2:
		case e.Op == token.MUL:
			return x * y, true
		case e.Op == token.SHL:
			return x << y, true
		}
	}
	return 0, false
}

// TestDocsNotification decodes the notification that docs/webhooks.md shows.
func TestDocsNotification(t *testing.T) {
	m := regexp.MustCompile("(?s)```\nPOST /aip .*?\n\n(.*?)```").FindStringSubmatch(pages(t)["docs/webhooks.md"])
	if m == nil {
		t.Fatal("docs/webhooks.md shows no notification")
	}
	var shown task.Task
	if err := json.Unmarshal([]byte(m[1]), &shown); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(strings.TrimSpace(m[1]), "\n ", ""),
		string(aip.Server().AppendNotification(nil, &shown))); diff != "" {
		t.Errorf("docs/webhooks.md shows a notification that this gateway would not send (-page +code):\n%s", diff)
	}
}
