// SPDX-License-Identifier: Apache-2.0

package aipgateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/dustin/go-humanize"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/caddymodule"
	"github.com/aip-gateway/aip-gateway/egress"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/notify/sign"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// inQuotes returns what stands in backquotes.
func inQuotes(cell string) (all []string) {
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	return all
}

// firstQuoted returns the first word in backquotes of every row of a table.
func firstQuoted(t *testing.T, page, header string) (all []string) {
	t.Helper()
	for _, row := range tables(pages(t)[page], header) {
		all = append(all, inQuotes(row[0])[0])
	}
	return all
}

// TestDocsAdminRoutes holds the table of docs/webhooks.md against the routes that the admin API has.
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
	if diff := cmp.Diff(want, firstQuoted(t, "docs/webhooks.md", "| route | takes | answers |")); diff != "" {
		t.Errorf("docs/webhooks.md does not have the routes of the admin API (-code +page):\n%s", diff)
	}
}

// TestDocsCommands holds the table of docs/operations.md against the commands that there are.
func TestDocsCommands(t *testing.T) {
	root := &cobra.Command{Use: "aip"}
	caddycmd.Commands()["aip"].CobraFunc(root)
	var want []string
	var walk func(path string, c *cobra.Command)
	walk = func(path string, c *cobra.Command) {
		path += " " + c.Name()
		if len(c.Commands()) == 0 {
			want = append(want, path)
		}
		for _, sub := range c.Commands() {
			walk(path, sub)
		}
	}
	walk("caddy", root)
	got := firstQuoted(t, "docs/operations.md", "| command | does |")
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/operations.md does not have the commands of the code (-code +page):\n%s", diff)
	}
}

// TestDocsDialects holds the tables of docs/configuration.md against what the configuration takes.
func TestDocsDialects(t *testing.T) {
	for _, tt := range []struct{ header, config, list string }{
		{"| `agent <dialect>` | the agent speaks | the URL is |", "aip_gateway x http://127.0.0.1:1", `this gateway can front (.*)$`},
		{"| `callers <dialect>` | callers speak | at |", "aip_gateway a2a http://127.0.0.1:1 {\ncallers x\n}", `this gateway can serve (.*)$`},
	} {
		err := validate(string(caddyfile.Format([]byte(":8443 {\n" + tt.config + "\n}\n"))))
		if err == nil {
			t.Fatalf("%s: no error", tt.config)
		}
		list := regexp.MustCompile(tt.list).FindStringSubmatch(err.Error())
		if list == nil {
			t.Fatalf("%s: %v", tt.config, err)
		}
		want := strings.Split(list[1], ", ")
		got := firstQuoted(t, "docs/configuration.md", tt.header)
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("docs/configuration.md does not have the dialects of the code (-code +page):\n%s", diff)
		}
	}
}

// TestDocsWebhookHeaders has a webhook told, and compares what arrives with the table of docs/webhooks.md.
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
	engine, err := notify.Open(t.Context(), store, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	engine.Configure(notify.Config{
		Egress:   &egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Keys:     sign.Keys{key},
		Dialects: func(string, string) notify.Wire { return aip.Server() },
	})
	const log = "tpartner\x00leader\x00task"
	hook := task.Webhook{URL: receiver.URL, Token: "secret", Dialect: "aip"}
	if _, err := engine.Set(t.Context(), log, hook, notify.At{}); err != nil {
		t.Fatal(err)
	}
	now := task.Task{ID: "task", Status: task.Status{State: task.Accepted, ChangedAt: time.Now()}}
	engine.Tell(t.Context(), log, []task.Change{{Seq: 1, Task: &now}})
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

// TestDocsWebhookDialects holds the table of docs/webhooks.md against how the dialects tell webhooks.
func TestDocsWebhookDialects(t *testing.T) {
	var got [][]string
	for _, row := range tables(pages(t)["docs/webhooks.md"], "| dialect | `Content-Type` | the token is in | the body is |") {
		got = append(got, append(append(inQuotes(row[0]), inQuotes(row[1])...), inQuotes(row[2])...))
	}
	var want [][]string
	for _, s := range []translate.Server{aip.Server(), aip.ServerV2(""), a2a.V1Server(false), a2a.V03Server(false), a2a.LegacyServer(false)} {
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
	constants, steps := notifyConstants(t)
	text := pages(t)["docs/webhooks.md"]
	limits := map[string]string{
		"webhooks of one task":                                          "maxHooks",
		"tasks with webhooks of one Leader, at one Partner":             "maxOutboxes",
		"bytes of a URL":                                                "maxURL",
		"bytes of a token, or of credentials":                           "maxSecret",
		"notifications kept for one task":                               "maxRecords",
		"bytes of them":                                                 "maxBytes",
		"dead letters of one webhook":                                   "maxDead",
		"how long dead letters are kept":                                "keepDead",
		"how long a webhook waits for its task":                         "keepEmpty",
		"how long the webhooks of an ended task stay, once all is told": "keepEnded",
		"`Retry-After` that is kept":                                    "maxRetryAfter",
		"attempts at one endpoint at the same time, for one Leader":     "flyingProven",
		"attempts of one Leader at the same time":                       "leaderFlying",
		"endpoints in memory, of one Leader":                            "leaderEndpoints",
		"endpoints in memory, of all Leaders":                           "maxEndpoints",
		"endpoints disabled by name":                                    "maxDisabled",
	}
	seen := 0
	for _, row := range tables(text, "| limit | value | at the limit |") {
		name, known := limits[row[0]]
		if !known {
			t.Errorf("docs/webhooks.md has the limit %q, which nothing here knows", row[0])
			continue
		}
		seen++
		if got, ok := amount(row[1]); !ok || got != constants[name] {
			t.Errorf("docs/webhooks.md says that %s is %s, the code that it is %d", row[0], row[1], constants[name])
		}
	}
	if seen != len(limits) {
		t.Errorf("docs/webhooks.md has %d of %d limits", seen, len(limits))
	}

	sentence := regexp.MustCompile(`A failure is tried again after (.*?), each`).FindStringSubmatch(text)
	if sentence == nil {
		t.Fatal("docs/webhooks.md does not say when a failure is tried again")
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

// notifyConstants returns the constants of package notify, and the steps between attempts.
func notifyConstants(t *testing.T) (constants map[string]int64, steps []int64) {
	t.Helper()
	files, err := filepath.Glob("notify/*.go")
	if err != nil {
		t.Fatal(err)
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

// TestDocsReceivers runs the receivers of docs/webhooks.md, and sends them notifications that they must take, and
// others that they must not.
func TestDocsReceivers(t *testing.T) {
	const token = "a secret of mine"
	text := pages(t)["docs/webhooks.md"]
	code := func(language string) string {
		m := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("docs/webhooks.md has no receiver in %s", language)
		}
		if n := strings.Count(m[1], "\n"); n > 15 {
			t.Errorf("the receiver in %s has %d lines", language, n)
		}
		return m[1]
	}
	dir := t.TempDir()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const port = "listen(8080)"
	node := code("js")
	if !strings.Contains(node, port) {
		t.Fatalf("the receiver in js does not %s", port)
	}
	write("receiver.js", strings.Replace(node, port, `listen(0, "127.0.0.1", function () { console.log(this.address().port) })`, 1))
	write("go.mod", "module receiver\n\ngo 1.26\n")
	write("receive.go", "package main\n\nimport (\n"+goImports(code("go"))+")\n\n"+code("go"))
	write("main.go", `package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
)

var (
	key   ed25519.PublicKey
	token = os.Getenv("WEBHOOK_TOKEN")
)

func main() {
	key, _ = base64.StdEncoding.DecodeString(strings.TrimPrefix(os.Getenv("WEBHOOK_KEY"), "whpk_"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(l, http.HandlerFunc(receive)))
}
`)
	build := exec.Command("go", "build", "-o", "receiver", ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the receiver in Go does not compile: %v\n%s", err, out)
	}

	public, shared := sign.Generate(), sign.GenerateHMAC()
	for _, tt := range []struct {
		name, key, verify string
		command           []string
		takes             int // of POSTs that are no success
	}{
		{"node ed25519", public, publicOf(t, public), []string{"node", "receiver.js"}, http.StatusNoContent},
		{"node hmac", shared, shared, []string{"node", "receiver.js"}, http.StatusNoContent},
		{"go", public, publicOf(t, public), []string{"./receiver"}, http.StatusOK},
	} {
		t.Run(tt.name, func(t *testing.T) {
			key, err := sign.Parse(tt.key)
			if err != nil {
				t.Fatal(err)
			}
			other, err := sign.Parse(sign.Generate())
			if err != nil {
				t.Fatal(err)
			}
			url, said := startReceiver(t, dir, tt.command, "WEBHOOK_KEY="+tt.verify, "WEBHOOK_TOKEN="+token)
			body := `{"type":"task","id":"t1","status":{"state":"working"}}`
			now := time.Now()
			post := func(id string, at time.Time, keys sign.Keys, sent string, change func(http.Header)) int {
				t.Helper()
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(sent))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set(sign.HeaderID, id)
				req.Header.Set(sign.HeaderTimestamp, sign.Timestamp(at))
				if s := keys.Header(id, at, []byte(body)); s != "" {
					req.Header.Set(sign.HeaderSignature, s)
				}
				req.Header.Set("X-ACPS-AIP-Notification-Token", token)
				change(req.Header)
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				return res.StatusCode
			}
			same := func(http.Header) {}
			set := func(name, value string) func(http.Header) {
				return func(h http.Header) {
					if h.Del(name); value != "" {
						h.Set(name, value)
					}
				}
			}
			for _, p := range []struct {
				name string
				got  int
				good bool
			}{
				{"no token", post("msg_0", now, sign.Keys{key}, body, set("X-ACPS-AIP-Notification-Token", "")), false},
				{"another token", post("msg_0", now, sign.Keys{key}, body, set("X-ACPS-AIP-Notification-Token", "x")), false},
				{"no signature", post("msg_0", now, nil, body, same), false},
				{"an empty signature", post("msg_0", now, nil, body, set(sign.HeaderSignature, "v1a, v1,")), false},
				{"another key", post("msg_0", now, sign.Keys{other}, body, same), false},
				{"another body", post("msg_0", now, sign.Keys{key}, body+" ", same), false},
				{"another id", post("msg_0", now, sign.Keys{key}, body, set(sign.HeaderID, "msg_9")), false},
				{"no id", post("msg_0", now, sign.Keys{key}, body, set(sign.HeaderID, "")), false},
				{"no time", post("msg_0", now, sign.Keys{key}, body, set(sign.HeaderTimestamp, "")), false},
				{"another time", post("msg_0", now, sign.Keys{key}, body, set(sign.HeaderTimestamp, sign.Timestamp(now.Add(time.Minute)))), false},
				{"too old", post("msg_0", now.Add(-6*time.Minute), sign.Keys{key}, body, same), false},
				{"too new", post("msg_0", now.Add(6*time.Minute), sign.Keys{key}, body, same), false},
				{"good", post("msg_1", now, sign.Keys{key}, body, same), true},
				{"good, again", post("msg_1", now, sign.Keys{key}, body, same), true},
				{"good, with another key before it", post("msg_2", now, sign.Keys{other, key}, body, same), true},
			} {
				want := http.StatusUnauthorized
				if p.good {
					want = tt.takes
				}
				if p.got != want {
					t.Errorf("%s: status %d, want %d", p.name, p.got, want)
				}
			}
			if tt.command[0] == "node" { // that one passes over what it has seen
				if diff := cmp.Diff([]string{"t1 working", "t1 working"}, said(2)); diff != "" {
					t.Errorf("the receiver says (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// goImports returns the import lines of the packages that code names.
func goImports(code string) string {
	var lines strings.Builder
	for _, path := range []string{"crypto/ed25519", "encoding/base64", "io", "log", "net/http", "strconv", "strings", "time"} {
		if strings.Contains(code, filepath.Base(path)+".") {
			fmt.Fprintf(&lines, "\t%q\n", path)
		}
	}
	return lines.String()
}

func publicOf(t *testing.T, secret string) string {
	t.Helper()
	key, err := sign.Parse(secret)
	if err != nil {
		t.Fatal(err)
	}
	return key.Public()
}

// startReceiver runs a program that prints the port that it listens on, until the end of the test. said returns the
// next lines that it prints.
func startReceiver(t *testing.T, dir string, command []string, env ...string) (url string, said func(n int) []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
	lines := bufio.NewScanner(out)
	said = func(n int) (all []string) {
		for range n {
			if !lines.Scan() {
				t.Fatalf("the receiver has ended: %s", stderr.String())
			}
			all = append(all, lines.Text())
		}
		return all
	}
	return "http://127.0.0.1:" + said(1)[0] + "/aip", said
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
	if diff := cmp.Diff(strings.ReplaceAll(strings.TrimSpace(m[1]), "\n ", ""), string(aip.Server().AppendNotification(nil, &shown))); diff != "" {
		t.Errorf("docs/webhooks.md shows a notification that this gateway would not send (-page +code):\n%s", diff)
	}
}
