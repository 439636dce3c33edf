// SPDX-License-Identifier: Apache-2.0

// Package registrytest is a registry of ACPs for tests. It answers in the words of a registry of version 2.1, and, if a
// test says so, wrongly, or breaks off before or after it has done the requested work. It refuses requests outside the
// interface of version 2.1.
package registrytest

import (
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/openapitest"
)

//go:embed answers
var answers embed.FS

// Captured returns an answer given by a registry of ACPs 2.1, or by a discovery server, if the name begins with
// discovery/.
func Captured(t testing.TB, name string) (status int, body string) {
	t.Helper()
	text, err := answers.ReadFile("answers/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	_, answer, found := strings.Cut(string(text), "\n--------------------\n")
	head, body, _ := strings.Cut(answer, "\n\n")
	line, _, _ := strings.Cut(head, "\n")
	status, err = strconv.Atoi(strings.TrimPrefix(line, "HTTP/1.1 "))
	if err != nil || !found {
		t.Fatalf("%s has no answer", name)
	}
	return status, body
}

// User and Password are those of the one user.
const (
	User     = "partner-ops"
	Password = "Partner#2026x"
)

// Fault is the fault of a request.
type Fault int

// The faults.
const (
	None   Fault = iota
	Before       // the connection breaks before the request is carried out
	After        // it breaks after its work, and the answer is lost
	Half         // it breaks within the answer
	Bad          // it is answered with 502, and not carried out
)

// Registry is a registry with one user.
type Registry struct {
	URL string

	t testing.TB

	mu       sync.Mutex
	tokens   int
	token    string // the one session of the user
	Logins   int
	agents   []map[string]any
	Requests []string // method and path of all
	// fail returns the fault of a request.
	fail func(method, path string) Fault
	oidc *provider // nil for version 2.1
	// keepsNames is set if the names for the certificate of an entity are kept.
	keepsNames bool
	eabs       int
}

// New starts a registry. It ends with the test.
func New(t testing.TB) *Registry {
	r := &Registry{t: t}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	r.URL = s.URL
	return r
}

// Fail sets the faults of requests; nil for none.
func (r *Registry) Fail(f func(method, path string) Fault) { r.do(func() { r.fail = f }) }

func (r *Registry) do(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// LogInElsewhere ends the session of the user, as a second login does.
func (r *Registry) LogInElsewhere() { r.do(func() { r.tokens++; r.token = "elsewhere" }) }

// Count returns the number of requests with a method and the beginning of a path.
func (r *Registry) Count(prefix string) (n int) {
	r.do(func() {
		for _, one := range r.Requests {
			if strings.HasPrefix(one, prefix) {
				n++
			}
		}
	})
	return n
}

// LoggedIn returns the number of the user's logins.
func (r *Registry) LoggedIn() (n int) { r.do(func() { n = r.Logins }); return n }

// Agents returns the versions of the agents with a name: their versions and statuses, in the order of their drafts.
func (r *Registry) Agents(name string) (list []string) {
	r.do(func() {
		for _, a := range r.agents {
			if a["name"] == name && a["is_deleted"] != true {
				list = append(list, fmt.Sprint(a["version"], " ", a["approval_status"]))
			}
		}
	})
	return list
}

// Process decides on a version waiting for its approval, as a person of the registry does. It returns the AIC.
func (r *Registry) Process(name, version string, approve bool, comments string) (aic string) {
	r.t.Helper()
	r.do(func() {
		for _, a := range r.agents {
			if a["name"] != name || a["version"] != version || a["approval_status"] != "PENDING" {
				continue
			}
			a["process_comments"], a["processed_at"] = comments, time.Now().Format(time.RFC3339)
			a["approval_status"] = "REJECTED"
			if approve {
				aic = fmt.Sprintf("1.2.156.3088.1.0001.00001.NENBED.MH2BL%d.0VKU", len(r.agents))
				a["approval_status"], a["aic"] = "APPROVED", aic
				text, _ := json.Marshal(a["acs"])
				var acs map[string]any
				_ = json.Unmarshal([]byte(strings.ReplaceAll(string(text), "{AIC}", aic)), &acs)
				acs["aic"], acs["active"], acs["lastModifiedTime"] = aic, true, "2026-11-23T22:16:15.862087+08:00"
				a["acs"] = acs
			}
			return
		}
		r.t.Errorf("%s %s does not wait for its approval", name, version)
	})
	return aic
}

// Disable disables an agent, as a person of the registry does.
func (r *Registry) Disable(aic, reason string) {
	r.do(func() {
		for _, a := range r.agents {
			if a["aic"] == aic {
				a["is_disabled"], a["is_active"], a["disabled_reason"] = true, false, reason
				a["acs"].(map[string]any)["active"] = false
			}
		}
	})
}

// ServeHTTP implements http.Handler.
func (r *Registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // the caller has broken off
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Requests = append(r.Requests, q.Method+" "+q.URL.Path)
	fault := None
	if r.fail != nil {
		fault = r.fail(q.Method, q.URL.Path)
	}
	switch fault {
	case Before:
		panic(http.ErrAbortHandler)
	case Bad:
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	status, answer := r.refusal(q, body)
	if status == 0 {
		status, answer = r.answer(q, body)
	}
	switch fault {
	case After:
		panic(http.ErrAbortHandler)
	case Half:
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		_, _ = io.WriteString(w, answer[:len(answer)/2])
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

// refusal refuses requests outside the interface of version 2.1. The status is 0 if nothing is wrong.
func (r *Registry) refusal(q *http.Request, body []byte) (int, string) {
	if r.oidc != nil || !openapitest.Registry().Knows(q.URL.Path) {
		return 0, ""
	}
	if err := openapitest.Registry().Check(q, body); err != nil {
		r.t.Logf("the registry refuses a request: %v", err)
		return Captured(r.t, "31-disable-bad-body")
	}
	return 0, ""
}

// answer carries out a request.
func (r *Registry) answer(q *http.Request, body []byte) (int, string) {
	path := q.URL.Path
	if r.oidc != nil && strings.HasPrefix(path, realm) {
		return r.oidc.answer(r, path, body)
	}
	switch {
	case path == "/api/v1/auth/login":
		return r.login(q, body)
	case strings.HasPrefix(path, "/acps-atr-v2/acs/"):
		return r.acs(strings.TrimPrefix(path, "/acps-atr-v2/acs/"))
	case r.token == "" || q.Header.Get("Authorization") != "Bearer "+r.token:
		return Captured(r.t, "04-me-old-token-after-refresh")
	case path == "/api/v1/agent/client" && q.Method == http.MethodGet:
		return r.list(q)
	case path == "/api/v1/agent/client":
		return r.draft(body)
	case strings.HasPrefix(path, "/api/v1/agent/client/"):
		return r.change(q.Method, strings.TrimPrefix(path, "/api/v1/agent/client/"), body)
	case path == "/acps-atr-v2/entity":
		return r.entity(body)
	case strings.HasPrefix(path, "/acps-atr-v2/eab/"):
		return r.eab(strings.TrimPrefix(path, "/acps-atr-v2/eab/"))
	}
	return http.StatusNotFound, `{"detail":"Not Found"}`
}

func (r *Registry) login(q *http.Request, body []byte) (int, string) {
	if r.oidc != nil {
		return http.StatusGone, `{"detail":"local login is off"}`
	}
	if q.Header.Get("Content-Type") != "application/x-www-form-urlencoded" ||
		string(body) != "password=Partner%232026x&username="+User {
		return Captured(r.t, "02b-login-wrong-password")
	}
	status, text := Captured(r.t, "02-login")
	r.Logins++
	return status, r.filled(text, map[string]any{"access_token": r.session(),
		"expires_at": time.Now().Add(time.Hour).Format(time.RFC3339Nano)})
}

// session begins the session of the user, and ends the one before.
func (r *Registry) session() string {
	r.tokens++
	r.token = fmt.Sprintf("token-%d", r.tokens)
	return r.token
}

// filled returns an answer with some members replaced.
func (r *Registry) filled(text string, members map[string]any) string {
	var all map[string]any
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		r.t.Error(err)
	}
	maps.Copy(all, members)
	return encode(all)
}

func encode(v any) string {
	text, _ := json.Marshal(v) // of maps read from JSON
	return string(text)
}

func (r *Registry) acs(aic string) (int, string) {
	for _, a := range r.agents {
		switch {
		case a["aic"] != aic:
		case a["is_deleted"] == true || a["is_active"] == false:
			return Captured(r.t, "33-acs-inactive")
		default:
			return http.StatusOK, encode(a["acs"])
		}
	}
	return Captured(r.t, "20b-acs-by-aic-lower-case")
}

func (r *Registry) list(q *http.Request) (int, string) {
	query := q.URL.Query()
	all := []map[string]any{}
	for _, a := range slices.Backward(r.agents) {
		if aic := query.Get("aic"); aic != "" && a["aic"] != aic {
			continue
		}
		if name := query.Get("name"); name != "" && a["name"] != name {
			continue
		}
		all = append(all, a)
	}
	page, _ := strconv.Atoi(query.Get("page_num"))
	size, _ := strconv.Atoi(query.Get("page_size"))
	page, size = max(page, 1), max(min(size, 100), 1)
	begin := min((page-1)*size, len(all))
	return http.StatusOK, encode(map[string]any{"items": all[begin:min(begin+size, len(all))], "total": len(all),
		"page_num": page, "page_size": size})
}

func (r *Registry) draft(body []byte) (int, string) {
	var sent map[string]any
	if json.Unmarshal(body, &sent) != nil || sent["acs"] == nil {
		return http.StatusUnprocessableEntity, `{"title":"Request validation failed"}`
	}
	for _, a := range r.agents {
		if a["name"] == sent["name"] && a["version"] == sent["version"] && a["is_deleted"] != true {
			return Captured(r.t, "08b-draft-same-name-version")
		}
	}
	status, text := Captured(r.t, "08-draft")
	var a map[string]any
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		r.t.Error(err)
	}
	maps.Copy(a, sent)
	a["id"] = fmt.Sprintf("01a208c3-bdcb-7282-be21-%012d", len(r.agents)+1)
	r.agents = append(r.agents, a)
	return status, encode(a)
}

// change carries out a request about one agent.
func (r *Registry) change(method, path string, body []byte) (int, string) {
	id, verb, _ := strings.Cut(path, "/")
	at := slices.IndexFunc(r.agents, func(a map[string]any) bool { return a["id"] == id })
	if at < 0 {
		return http.StatusNotFound, `{"error_name":"AGENT_NOT_FOUND","detail":"Agent not found"}`
	}
	a := r.agents[at]
	status := a["approval_status"]
	open := status == "DRAFT" || status == "REJECTED"
	switch {
	case method == http.MethodDelete:
		a["is_deleted"], a["is_active"] = true, false
		return Captured(r.t, "37-delete")
	case method == http.MethodPut && !open:
		return Captured(r.t, "11c-update-pending")
	case method == http.MethodPut:
		var sent map[string]any
		if json.Unmarshal(body, &sent) != nil {
			return http.StatusUnprocessableEntity, `{"title":"Request validation failed"}`
		}
		maps.Copy(a, sent)
		if acs, ok := a["acs"].(map[string]any); ok {
			acs["aic"] = nil // as the registry writes it
		}
	case verb == "submit" && !open, verb == "cancel" && status != "PENDING":
		return Captured(r.t, "11b-submit-again")
	case verb == "submit":
		a["approval_status"], a["submitted_at"] = "PENDING", time.Now().Format(time.RFC3339)
	case verb == "cancel":
		a["approval_status"], a["submitted_at"] = "DRAFT", nil
	}
	return http.StatusOK, encode(a)
}

func (r *Registry) eab(aic string) (int, string) {
	for _, a := range r.agents {
		if a["aic"] == aic {
			r.eabs++
			status, text := Captured(r.t, "24-eab")
			return status, r.filled(text, map[string]any{"aic": aic, "keyId": fmt.Sprintf("key-%d", r.eabs)})
		}
	}
	return Captured(r.t, "23-eab-not-owner")
}
