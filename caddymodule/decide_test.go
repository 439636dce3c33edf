// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
)

// opa answers as the data API of Open Policy Agent does: by the path of a document.
type opa struct {
	mu    sync.Mutex
	asked []string // the actions that it was asked about
	down  bool
}

func (o *opa) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var q struct {
		Input struct {
			PrimarySubject struct{ ID string }
			Action         string
		}
	}
	if err := json.Unmarshal(body, &q); err != nil || strings.Contains(string(body), "private") {
		http.Error(w, `{"code":"invalid_parameter"}`, http.StatusBadRequest)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, q.Input.Action)
	w.Header().Set("Content-Type", "application/json")
	switch {
	case o.down:
		w.WriteHeader(http.StatusInternalServerError)
	case r.URL.Path == "/v1/data/aip/decision":
		_, _ = fmt.Fprintf(w, `{"result":{"allow":%t,"reason":"no role for %s"}}`, q.Input.Action != "task.cancel",
			q.Input.Action)
	default:
		_, _ = io.WriteString(w, `{}`)
	}
}

// actions returns what it was asked since the last time.
func (o *opa) actions() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	asked := o.asked
	o.asked = nil
	return asked
}

// TestDecide: a decision point is asked about calls in every dialect that the rules allow, and only its yes lets them
// in.
func TestDecide(t *testing.T) {
	point := new(opa)
	server := httptest.NewServer(point)
	t.Cleanup(server.Close)
	policy := func(document, more string) string {
		return "policy {\ndeny command list\nallow\ndecide " + server.URL + "/v1/data/aip/" + document +
			"\n" + more + "\n}"
	}
	c := compose(t, "", "", policy("decision", ""))
	start := c.rpc("start", "t1", "private")
	for _, tc := range []struct {
		name, path, body, version string
		status                    int
		answer                    string
		asked                     []string
	}{
		{"a start", "/rpc", start, "", 200, `"awaiting-completion"`, []string{"task.start"}},
		{"a cancel", "/rpc", c.rpc("cancel", "t1", ""), "", 200, `"code":-32009`, []string{"task.cancel"}},
		{"a cancel of A2A 1.0", "/", a2aCall("CancelTask", `{"id":"t1"}`), "1.0", 200, "not allowed",
			[]string{"task.cancel"}},
		{"a cancel by REST", "/tasks/t1:cancel", "{}", "1.0", 403, "not allowed", []string{"task.cancel"}},
		{"what a rule denies", "/", a2aCall("ListTasks", `{}`), "1.0", 200, "not allowed", nil},
		{"what is not there", "/rpc", c.rpc("get", "t2", ""), "", 200, "-32001", []string{"task.get"}},
	} {
		status, answer := c.send(true, "POST", tc.path, tc.body, "A2A-Version", tc.version)
		if status != tc.status || !strings.Contains(answer, tc.answer) || strings.Contains(answer, "role") {
			t.Errorf("%s: %d, %s", tc.name, status, answer)
		}
		if diff := cmp.Diff(tc.asked, point.actions()); diff != "" {
			t.Errorf("%s: it was asked (-want +got):\n%s", tc.name, diff)
		}
	}
	if _, answer := c.send(false, "POST", "/rpc", start); !strings.Contains(answer, "-32008") || point.actions() != nil {
		t.Errorf("nobody: %s", answer)
	}
	point.down = true
	if _, answer := c.send(true, "POST", "/rpc", start); !strings.Contains(answer, `"code":-32009`) {
		t.Errorf("it is down: %s", answer)
	}
	point.down = false
	c = compose(t, "", "", policy("nothing", ""))
	_, answer := c.send(true, "POST", "/rpc", c.rpc("start", "t1", "hello"))
	if !strings.Contains(answer, `"code":-32009`) {
		t.Errorf("undefined: %s", answer)
	}
	c = compose(t, "", "", policy("nothing", "dry_run"))
	if _, answer := c.send(true, "POST", "/rpc", c.rpc("start", "t1", "hello")); !strings.Contains(answer, `"result"`) {
		t.Errorf("tried only: %s", answer)
	}
}

// TestExamineDecide: doctor says whether the decision point can be reached.
func TestExamineDecide(t *testing.T) {
	server := httptest.NewServer(new(opa))
	for _, down := range []bool{false, true} {
		if down {
			server.Close()
		}
		handler := fmt.Sprintf(`{"handler":"aip_gateway","agent":{"dialect":"a2a/legacy","url":"http://127.0.0.1:9101"},`+
			`"policy":{"decide":{"url":%q}}}`, server.URL)
		app := &App{StoreRaw: json.RawMessage(`{"driver":"memory"}`)}
		said := ""
		partners := []doctor.Partner{{Handler: json.RawMessage(handler)}}
		for _, f := range findings(t, app, partners) {
			if f.Check == doctor.CheckPolicy {
				said += string(f.Status) + " " + f.Text
			}
		}
		want := "ok every rule can decide"
		if down {
			want = "error the decision point cannot be reached (dial tcp "
		}
		if !strings.HasPrefix(said, want) {
			t.Errorf("down %t: %s", down, said)
		}
	}
}

// findings returns what doctor finds out about an app and its Partners.
func findings(t *testing.T, app *App, partners []doctor.Partner) []doctor.Finding {
	whole, err := caddy.ProvisionContext(new(caddy.Config))
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := caddy.NewContext(whole)
	defer end()
	setup, err := app.Setup(ctx, partners)
	if err != nil {
		t.Fatal(err)
	}
	return setup.Examine(ctx, partners, doctor.Try{})
}
