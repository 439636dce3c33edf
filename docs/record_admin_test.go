// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/freeport"
	"github.com/aip-gateway/aip-gateway/internal/legacyagent"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// adminRecord asks the routes of the admin API, and notes what they answer.
type adminRecord struct {
	t      *testing.T
	routes *http.ServeMux
	here   string // the URL of the Partner
	dir    string
	text   strings.Builder
}

func newAdminRecord(t *testing.T) *adminRecord {
	a := &adminRecord{t: t, routes: http.NewServeMux(), dir: t.TempDir()}
	for _, route := range new(caddymodule.Admin).Routes() {
		a.routes.HandleFunc(route.Pattern, func(w http.ResponseWriter, r *http.Request) {
			// As Caddy does.
			if bad := (caddy.APIError{}); errors.As(route.Handler.ServeHTTP(w, r), &bad) {
				w.WriteHeader(bad.HTTPStatus)
				fmt.Fprintf(w, `{"error":%q}`, bad.Err.Error())
			}
		})
	}
	return a
}

// recordPartner is the Partner of the script.
const recordPartner = "10001000011K912345E789ABCDEF2353"

// serve runs a gateway with one Partner. Its agent and a receiver of its webhooks run until the test ends.
func (a *adminRecord) serve() {
	agent := legacyagent.New(legacyagent.Options{})
	a.t.Cleanup(func() { agent.Close() })
	up := httptest.NewServer(agent)
	a.t.Cleanup(up.Close)
	gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusGone)
	}))
	a.t.Cleanup(gone.Close)
	port, err := freeport.Take()
	if err != nil {
		a.t.Fatal(err)
	}
	a.here = fmt.Sprint("http://127.0.0.1:", port)
	serve(a.t, fmt.Sprintf(`{
	admin off
	auto_https off
	aip {
		store pebble %s
		drain 1s
		notify {
			allow_networks 127.0.0.0/8
			keep_bodies
		}
	}
}
%s {
	aip_gateway a2a/legacy %s {
		identity off
		aic %s
		policy {
			allow
		}
		quota all {
			calls 100/s
		}
	}
}
`, a.dir, a.here, up.URL, recordPartner))
	a.call("notification/set", `{"taskId":"done","url":"`+gone.URL+`","token":"secret"}`)
	a.command("start", "done", "hello")
	a.command("complete", "done", "")
	a.command("start", "open", "ask")
	asynctest.Eventually(a.t, "the notification was refused", func() bool {
		_, body := a.answer(http.MethodGet, adminapi.Deliveries+"?status=disabled", "")
		return bytes.Contains(body, []byte(`"last_status":410`))
	})
}

// call sends a request of a Leader.
func (a *adminRecord) call(method, params string) {
	a.t.Helper()
	res, err := http.Post(a.here, "application/json",
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`))
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()
	if answer, err := io.ReadAll(res.Body); err != nil || bytes.Contains(answer, []byte(`"error"`)) {
		a.t.Fatalf("%s: %s, %v", method, answer, err)
	}
}

func (a *adminRecord) command(command, task, text string) {
	a.t.Helper()
	a.call("rpc", `{"message":{"id":"`+command+"-"+task+`","senderId":"l","sessionId":"s","command":"`+command+
		`","taskId":"`+task+`","dataItems":[{"type":"text","text":"`+text+`"}]}}`)
}

// answer asks a route.
func (a *adminRecord) answer(method, target, body string) (int, []byte) {
	w := httptest.NewRecorder()
	a.routes.ServeHTTP(w, httptest.NewRequestWithContext(a.t.Context(), method, target, strings.NewReader(body)))
	return w.Code, w.Body.Bytes()
}

// ask asks a route, and notes the answer: the text of an error, else the paths in its JSON, or in that of its lines,
// with the kinds of their values.
func (a *adminRecord) ask(method, target, body string) {
	a.t.Helper()
	status, answer := a.answer(method, target, body)
	fmt.Fprintln(&a.text, strings.TrimSpace(method+" "+target+" "+body))
	if status != http.StatusOK {
		fmt.Fprintf(&a.text, "\t%d %s\n", status, bytes.TrimSpace(answer))
		return
	}
	form := make(map[string]bool)
	for line := range bytes.Lines(answer) {
		line = bytes.TrimSpace(line)
		text, isEvent := bytes.CutPrefix(line, []byte("data: "))
		var v any
		switch {
		case json.Unmarshal(text, &v) == nil && isEvent:
			formOf("data", v, form)
		case v != nil:
			formOf("", v, form)
		case len(line) > 0:
			form[string(line)] = true
		}
	}
	for _, path := range slices.Sorted(maps.Keys(form)) {
		fmt.Fprintf(&a.text, "\t%s\n", path)
	}
}

// formOf adds the paths of a value of JSON to a form.
func formOf(path string, v any, form map[string]bool) {
	kind := "null"
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			formOf(path+"."+name, member, form)
		}
		kind = "object"
	case []any:
		for _, e := range v {
			formOf(path+"[]", e, form)
		}
		kind = "list"
	case string:
		kind = "text"
	case float64:
		kind = "number"
	case bool:
		kind = "boolean"
	}
	form[path+" "+kind] = true
}

// run asks the routes about what serve has made happen.
func (a *adminRecord) run() {
	const of, done = "?partner=" + recordPartner, "?partner=" + recordPartner + "&leader=l&task=done"
	const open = `{"partner":"` + recordPartner + `","leader":"l","task":"open"}`
	for _, q := range []struct{ method, target, body string }{
		{"GET", adminapi.HealthLive, ""},
		{"GET", adminapi.HealthReady, ""},
		{"GET", adminapi.Deliveries, ""},
		{"GET", adminapi.Exchanges, ""},
		{"GET", adminapi.Webhooks + done, ""},
		{"GET", adminapi.Endpoints, ""},
		{"POST", adminapi.ReplayDeliveries + "?dry_run=true&status=dead", ""},
		{"GET", adminapi.Groups, ""},
		{"POST", adminapi.LeaveGroup, `{"partner":"` + recordPartner + `","leader":"l","group":"g"}`},
		{"GET", adminapi.AgentCardOf + of, ""},
		{"GET", adminapi.AgentSettingsOf + of, ""},
		{"GET", adminapi.OverviewOf, ""},
		{"GET", adminapi.Tasks, ""},
		{"GET", adminapi.TaskCounts, ""},
		{"GET", adminapi.TaskEvents + done, ""},
		{"GET", adminapi.ShowTask + done, ""},
		{"GET", adminapi.TailTasks + done, ""},
		{"POST", adminapi.CancelTask, open},
		{"POST", adminapi.FailTask, open},
		{"GET", adminapi.Streams, ""},
		{"GET", adminapi.Store, ""},
		{"POST", adminapi.VerifyStore, ""},
		{"GET", adminapi.ExportStore, ""},
		{"GET", adminapi.PolicyRules, ""},
		{"GET", adminapi.QuotaUses, ""},
		{"GET", adminapi.Issuers, ""},
		{"POST", adminapi.TryPartner, `{"partner":"` + recordPartner + `","command":"start","text":"hello"}`},
		{"GET", adminapi.Drain, ""},
		{"POST", adminapi.Drain, ""},
		{"DELETE", adminapi.Drain, ""},
		{"GET", adminapi.Cluster, ""},
		{"GET", adminapi.CheckDiscovery, ""},
		{"GET", adminapi.Registrations, ""},
		{"GET", adminapi.Certificates, ""},
	} {
		a.ask(q.method, q.target, q.body)
	}
}
