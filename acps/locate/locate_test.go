// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/acps/adp"
	"github.com/aip-gateway/aip-gateway/acps/registry"
	"github.com/aip-gateway/aip-gateway/acps/registry/registrytest"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/openapitest"
)

// The agents of the answers that were captured.
const (
	partnerAIC   = "1.2.156.3088.1.0001.00001.NENBED.MH2BLU.0VKU"
	entityAIC    = "1.2.156.3088.1.0001.00001.YWG8FE.OGVPSG.0ZO8"
	discoveryAIC = "1.2.156.3088.1.0001.00001.RX09I0.911IM4.0XB3"
	v1AIC        = "10001000011K912345E789ABCDEF2353"
)

func body(t testing.TB, name string) json.RawMessage {
	_, body := registrytest.Captured(t, name)
	return json.RawMessage(body)
}

func TestRead(t *testing.T) {
	acs := func(members string) json.RawMessage {
		return json.RawMessage(`{"aic":"` + partnerAIC + `","active":true,` + members + `}`)
	}
	const here = `"endPoints":[{"url":"https://a.example/{AIC}","transport":"JSONRPC"}]`
	for name, tt := range map[string]struct {
		aic  string
		acs  json.RawMessage
		want Agent
		kind registry.Kind
	}{
		"of a registry": {partnerAIC, body(t, "20-acs-by-aic"), Agent{URL: "https://localhost:29043", Dialect: V2}, 0},
		"of an entity, without a version": {entityAIC, body(t, "50-acs-entity"),
			Agent{URL: "https://localhost:30001/rpc", Dialect: V2}, 0},
		"of v1": {partnerAIC, acs(`"protocolVersion":"01.00",` + here),
			Agent{URL: "https://a.example/" + partnerAIC, Dialect: V1}, 0},
		"the first that can be used": {partnerAIC, acs(`"endPoints":[{"url":"amqps://q","transport":"AMQP"},` +
			`{"url":"http://plain","transport":"JSONRPC"},{"url":"https://u:p@a","transport":"JSONRPC"},` +
			`{"url":"https://b.example/rpc","transport":"JSONRPC"}]`), Agent{URL: "https://b.example/rpc", Dialect: V2}, 0},
		"of another agent": {entityAIC, body(t, "20-acs-by-aic"), Agent{}, registry.Malformed},
		"not active": {partnerAIC, json.RawMessage(`{"aic":"` + partnerAIC + `",` + here + `}`), Agent{},
			registry.Inactive},
		"of an unknown version": {partnerAIC, acs(`"protocolVersion":"03.00",` + here), Agent{}, registry.Malformed},
		"without an endpoint":   {partnerAIC, acs(`"endPoints":[]`), Agent{}, registry.Malformed},
		"no object":             {partnerAIC, json.RawMessage(`[]`), Agent{}, registry.Malformed},
	} {
		got, err := Read(tt.aic, tt.acs)
		if tt.want.URL == "" {
			if !registry.Is(err, tt.kind) {
				t.Errorf("%s: %v, want kind %v", name, err, tt.kind)
			}
			continue
		}
		tt.want.AIC, tt.want.ACS = tt.aic, tt.acs
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	if got := DialectOf(v1AIC, ""); got != V1 {
		t.Errorf("an AIC without dots is of %s", got)
	}
}

// server answers each path with what was captured.
func server(t *testing.T, answers map[string]string) *registry.Client {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		for _, server := range []*openapitest.Interface{openapitest.Registry(), openapitest.Discovery()} {
			if err == nil && server.Knows(r.URL.Path) {
				err = server.Check(r, body)
			}
		}
		if err != nil {
			t.Errorf("the server refuses a request: %v", err)
		}
		name := answers[r.URL.Path]
		if name == "" {
			if hijacked, _, err := http.NewResponseController(w).Hijack(); err == nil {
				hijacked.Close() // broken off
			}
			return
		}
		status, answer := registrytest.Captured(t, name)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(s.Close)
	c, err := registry.New(registry.Config{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestFind goes through the sources: what a registry says by each of its answers decides who else is asked.
func TestFind(t *testing.T) {
	const acs = "/acps-atr-v2/acs/" + discoveryAIC
	const listed, notListed = "discovery/01-filtered-by-aic", "discovery/07-aic-unknown"
	fixed := map[string]Agent{discoveryAIC: {URL: "https://fixed", Dialect: V2, Source: "map"}}
	for name, tt := range map[string]struct {
		registry, discovery string
		fixed               map[string]Agent
		want                string        // the source, or what the error says
		kind                registry.Kind // of the error
	}{
		"unknown at the registry":  {"10-acs-unknown-aic", listed, fixed, "discovery", 0},
		"inactive at the registry": {"33-acs-inactive", listed, fixed, "not active (403", registry.Inactive},
		"refused by the registry":  {"20c-acs-bad-checksum", notListed, nil, "refuses it (400", registry.Refused},
		"the registry breaks off":  {"", listed, fixed, "discovery", 0},
		"unknown to both":          {"10-acs-unknown-aic", notListed, fixed, "map", 0},
		"unknown to all": {"10-acs-unknown-aic", notListed, nil, "discovery: the discovery server knows no such agent",
			registry.Refused},
		"unknown, by 404":           {"404-acs", notListed, nil, "no such agent (404", registry.NotFound},
		"the discovery breaks off":  {"10-acs-unknown-aic", "", fixed, "map", 0},
		"the registry has another":  {"20-acs-by-aic", listed, nil, "discovery", 0},
		"all break off":             {"", "", nil, "not available", registry.Unavailable},
		"discovery is no discovery": {"10-acs-unknown-aic", "20-acs-by-aic", nil, "not as a discovery", registry.Refused},
	} {
		c := server(t, map[string]string{acs: tt.registry, "/discover": tt.discovery})
		d := Discovery(&adp.Client{URL: c.URL(), HTTP: http.DefaultClient})
		d.Name = "discovery"
		f := New([]Source{{Name: "registry", ACS: c.ACS}, d}, tt.fixed)
		got, err := f.Find(t.Context(), discoveryAIC)
		switch {
		case err == nil && got.Source != tt.want:
			t.Errorf("%s: found by %s", name, got.Source)
		case err != nil && (!registry.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if f.Fresh(discoveryAIC) != (err == nil) {
			t.Errorf("%s: it is fresh: %v", name, err != nil)
		}
	}
}

// world is a registry whose answers change.
type world struct {
	mu       sync.Mutex
	url      string
	err      error
	standing registry.Standing
	asked    int
}

func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *world) source() Source {
	return Source{Name: "registry",
		ACS: func(_ context.Context, aic string) (json.RawMessage, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.asked++
			return json.RawMessage(`{"aic":"` + aic + `","active":true,"endPoints":[{"transport":"JSONRPC","url":"` +
				w.url + `"}]}`), w.err
		},
		Standing: func(string) registry.Standing {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.standing
		}}
}

// TestKept holds how long what was found counts: with a feed until it says otherwise, else for a minute; and while
// nothing answers, what was there before.
func TestKept(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := &world{url: "https://one"}
		f := New([]Source{w.source()}, nil)
		check := func(what, url string, asked int) {
			t.Helper()
			a, err := f.Find(t.Context(), partnerAIC)
			if a.URL != url || (err == nil) != (url != "") || w.asked != asked {
				t.Errorf("%s: %q (%v) after %d requests, want %q after %d", what, a.URL, err, w.asked, url, asked)
			}
		}
		heard := func(active bool, revision uint64) {
			w.set(func() {
				w.standing = registry.Standing{Known: true, Active: active, Revision: revision, Answered: time.Now()}
			})
		}
		check("at first", "https://one", 1)
		bubble.Pass(maxAge / 2)
		check("in the same minute", "https://one", 1)
		bubble.Pass(maxAge / 2)
		w.set(func() { w.url = "https://two" })
		check("it has moved, without a feed", "https://two", 2)
		heard(true, 1)
		check("the feed begins", "https://two", 3)
		for range 10 {
			bubble.Pass(time.Minute)
			heard(true, 1)
			check("the feed says nothing new", "https://two", 3)
		}
		w.set(func() { w.url = "https://three" })
		heard(true, 2)
		if f.Fresh(partnerAIC) {
			t.Error("an agent that has moved is fresh")
		}
		check("the feed says that it has moved", "https://three", 4)
		heard(false, 3)
		check("disabled", "", 4)
		heard(true, 4)
		check("enabled", "https://three", 5)
		w.set(func() { w.err = &registry.Error{Kind: registry.Unavailable} })
		bubble.Pass(registry.Fresh + maxAge)
		check("nothing answers", "https://three", 6)
		check("it is not asked all the time", "https://three", 6)
		bubble.Pass(pause)
		check("but again", "https://three", 7)
		w.set(func() { w.err = &registry.Error{Kind: registry.NotFound} })
		bubble.Pass(pause)
		check("it answers that there is none", "", 8)
		check("which is not kept", "", 9)
		w.set(func() { w.err = nil })
		check("it is back", "https://three", 10)
		w.set(func() { w.err = &registry.Error{Kind: registry.Unavailable} })
		bubble.Pass(maxStale)
		check("nothing answers for a day", "", 11)
	})
}

// FuzzRead: whatever an ACS says, an agent that is read has an https URL and a dialect.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"20-acs-by-aic", "50-acs-entity"} {
		f.Add([]byte(body(f, name)))
	}
	f.Add([]byte(`{"aic":"` + partnerAIC + `","active":true,` +
		`"endPoints":[{"url":"https://[::1]:1/{AIC}?a#","transport":"JSONRPC"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, err := Read(partnerAIC, raw)
		if err == nil && (!strings.HasPrefix(a.URL, "https://") || a.Dialect == "" || a.AIC != partnerAIC) {
			t.Errorf("%+v", a)
		}
	})
}
