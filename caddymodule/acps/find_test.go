// SPDX-License-Identifier: Apache-2.0

package acps

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/acps/registry"
	"github.com/aip-gateway/aip-gateway/acps/registry/registrytest"
	"github.com/aip-gateway/aip-gateway/caddymodule/agents"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf/conftest"
	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/upstream/discovery"
)

const (
	aicV1 = "10001000011K912345E789ABCDEF2353"
	aicV2 = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"
)

var silent = slog.New(slog.DiscardHandler)

// readFind reads the option as in a Caddyfile.
func readFind(options string) (f *Find, err error) {
	p := conftest.Parser("find {\n" + options + "\n}")
	FindOption(p, &f)()
	return f, p.Failed()
}

// provision makes the finder of a Find, and ends it with the test.
func provision(t *testing.T, f *Find, own *Registry) {
	t.Helper()
	t.Cleanup(f.Stop)
	if err := f.Provision(own, new(node.Feeds), silent); err != nil {
		t.Fatal(err)
	}
}

// findAgent has an agent found as a Partner does.
func findAgent(t *testing.T, f *Find, a agents.Config) (discovery.Found, error) {
	t.Helper()
	var c gateway.AgentConfig
	if err := f.FindAgent(&a, &c); err != nil {
		t.Fatal(err)
	}
	return c.Finder.Find(t.Context())
}

// registryOf starts a registry with one agent at https://a.example. It has another status if one is stored.
func registryOf(t *testing.T, status *atomic.Int32) (url string) {
	_, inactive := registrytest.Captured(t, "33-acs-inactive")
	_, unknown := registrytest.Captured(t, "10-acs-unknown-aic")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := map[int32]string{http.StatusForbidden: inactive, http.StatusNotFound: unknown}[status.Load()]
		if status.Load() != 0 {
			w.WriteHeader(int(status.Load()))
		} else if r.URL.Path == "/acps-atr-v2/acs/"+aicV2 {
			text = `{"aic":"` + aicV2 + `","active":true,"protocolVersion":"02.00","endPoints":[{"transport":"JSONRPC",` +
				`"url":"https://a.example"}]}`
		}
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestFind: what the option reads.
func TestFind(t *testing.T) {
	got, err := readFind("registry\nregistry https://a.example {\nca a.pem b.pem\n}\ndiscovery https://b.example/adp\n" +
		"discovery https://c.example {\nca c.pem\nclient_cert d.pem e.pem\n}\nagent " + aicV1 + " https://d.example\n" +
		"agent " + aicV2 + " https://e.example aip")
	if err != nil {
		t.Fatal(err)
	}
	want := &Find{
		Registries: []FindServer{{}, {URL: "https://a.example", CA: []string{"a.pem", "b.pem"}}},
		Discovery: []FindServer{{URL: "https://b.example/adp"},
			{URL: "https://c.example", CA: []string{"c.pem"}, Cert: "d.pem", Key: "e.pem"}},
		Agents: []FoundAgent{{AIC: aicV1, URL: "https://d.example"}, {aicV2, "https://e.example", "aip"}},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Find{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFindMistakes: what is said about each mistake in a Caddyfile.
func TestFindMistakes(t *testing.T) {
	conftest.Refuses(t, map[string]string{
		"agent " + aicV1: "agent is written as: agent <aic> <url> [<dialect>], at Testfile:2",
		"agent " + aicV1 + " https://a.example aip now": "agent is written as: agent <aic> <url> [<dialect>], at Testfile:2",
		"registry https://a.example {\nclient_cert a b\n}": `there is no "client_cert" in registry, at ` +
			`Testfile:3`,
		"discovery https://a.example {\nca\n}":   "ca needs at least one value, at Testfile:3",
		"registries https://a.example":           `there is no "registries" in find, at Testfile:2`,
		"agents " + aicV1 + " https://a.example": `there is no "agents" in find; did you mean "agent"?, at Testfile:2`,
	}, func(text string) error {
		_, err := readFind(text)
		return err
	})
}

// TestFindSettings: what is said about settings of no use, whoever has written them.
func TestFindSettings(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.pem")
	conftest.Refuses(t, map[string]string{
		`{}`:                  "find: it has nothing to find agents by; name a registry, a discovery server or an agent",
		`{"registries":[{}]}`: "find: registry: it has no URL, and there is no option registry whose URL it could be",
		`{"registries":[{"url":"https://a.example","cert":"a"}]}`: "find: registry: a registry is shown no certificate; " +
			"leave cert and key out",
		`{"registries":[{"url":"https://a.example/acps"}]}`: `find: registry: "https://a.example/acps" has a path; write ` +
			"the URL of the registry without one",
		`{"registries":[{"url":"http://a.example/"}]}`: `find: registry: "http://a.example/" must be https, because ` +
			"others on the way could read and change what is sent",
		`{"registries":[{"url":"https://a.example","ca":["` + none + `"]}]}`: "find: registry: ca: " + none + ": it " +
			"cannot be read (open " + none + ": no such file or directory); correct its path or its permissions",
		`{"discovery":[{}]}`: `find: discovery: "" is no https URL`,
		`{"discovery":[{"url":"https://a.example?x"}]}`: "find: discovery: the URL must have no credentials, query and " +
			"fragment",
		`{"discovery":[{"url":"https://a.example","ca":["` + none + `"]}]}`: "find: discovery: tls ca: open " + none +
			": no such file or directory",
		`{"discovery":[{"url":"https://a.example","key":"a"}]}`: "find: discovery: tls client_cert needs a certificate " +
			"and its key",
		`{"agents":[{"aic":"{env.AIC}","url":"https://a.example"}]}`: "find: agent cannot have the placeholder " +
			"{env.AIC}; in a Caddyfile, write {$AIC}, which is replaced when the file is read",
		`{"agents":[{"aic":"1.2","url":"https://a.example"}]}`: `find: agent: "1.2": levels 1 to 4 of the AIC are not ` +
			"1.2.156.3088",
		`{"agents":[{"aic":"` + aicV1 + `","url":"http://a.example"}]}`: `find: agent: "http://a.example" is no https ` +
			"URL of an agent, without a user and a #",
		`{"agents":[{"aic":"` + aicV1 + `","url":"https://a.example","dialect":"a2a"}]}`: `find: agent: the dialect is ` +
			`"a2a", but must be aip or aip/2`,
		`{"agents":[{"aic":"` + aicV1 + `","url":"https://a.example"},{"aic":"` + strings.ToLower(aicV1) +
			`","url":"https://b.example"}]}`: "find: agent: " + aicV1 + " is given twice; leave one of them out",
	}, func(text string) error {
		f := new(Find)
		if err := json.Unmarshal([]byte(text), f); err != nil {
			t.Fatal(err)
		}
		defer f.Stop()
		return f.Provision(nil, new(node.Feeds), silent)
	})
}

// TestFoundAgents: an agent in the settings is where they say. Its dialect is that of the Partner's agent, or else that
// of the settings, or of its AIC.
func TestFoundAgents(t *testing.T) {
	f := &Find{Agents: []FoundAgent{{AIC: strings.ToLower(aicV1), URL: "https://a.example"},
		{AIC: aicV2, URL: "https://b.example"}}}
	provision(t, f, nil)
	const why = "the option find says so"
	for _, tc := range []struct {
		agent agents.Config
		want  discovery.Found
	}{
		{agents.Config{AIC: aicV1}, discovery.Found{Dialect: "aip", URL: "https://a.example", Why: why}},
		{agents.Config{AIC: aicV2}, discovery.Found{Dialect: "aip/2", URL: "https://b.example", Why: why}},
		{agents.Config{AIC: aicV2, Dialect: "aip"}, discovery.Found{Dialect: "aip/2", URL: "https://b.example", Why: why}},
		{agents.Config{AIC: aicV1, Dialect: "aip/2"}, discovery.Found{Dialect: "aip/2", URL: "https://a.example", Why: why}},
	} {
		got, err := findAgent(t, f, tc.agent)
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s as %q: %v (-want +got):\n%s", tc.agent.AIC, tc.agent.Dialect, err, diff)
		}
	}
	g := &Find{Agents: []FoundAgent{{aicV2, "https://a.example", "aip"}}}
	provision(t, g, nil)
	if got, err := findAgent(t, g, agents.Config{AIC: aicV2}); got.Dialect != "aip" || err != nil {
		t.Errorf("with a dialect of its own: %+v, %v", got, err)
	}
}

// TestFindAgent: an agent without an AIC is not to be found, and one with an AIC needs the option.
func TestFindAgent(t *testing.T) {
	var none *Find
	if err := none.Provision(nil, new(node.Feeds), silent); err != nil {
		t.Error(err)
	}
	none.Start()
	none.Stop()
	var c gateway.AgentConfig
	if err := none.FindAgent(&agents.Config{URL: "https://a.example"}, &c); err != nil || c.Finder != nil {
		t.Errorf("an agent with a URL: %v, %v", c.Finder, err)
	}
	const want = "an agent by its AIC needs the global option aip { find { registry <url> } }"
	if err := none.FindAgent(&agents.Config{AIC: aicV2}, &c); err == nil || err.Error() != want {
		t.Errorf("an agent with an AIC: %v, want %s", err, want)
	}
}

// TestFindAtRegistry: a Leader reads why an agent is not found, and no server's name. The log has the cause.
func TestFindAtRegistry(t *testing.T) {
	var status atomic.Int32
	url := registryOf(t, &status)
	for answered, want := range map[int32]string{
		http.StatusForbidden:           "the agent is not active at its registry",
		http.StatusNotFound:            "the agent is not registered",
		http.StatusServiceUnavailable:  "where the agent is could not be found out",
		http.StatusInternalServerError: "where the agent is could not be found out",
	} {
		f := &Find{Registries: []FindServer{{URL: url + "/"}}}
		provision(t, f, nil)
		status.Store(answered)
		_, err := findAgent(t, f, agents.Config{AIC: aicV2})
		said, ok := errors.AsType[*task.Error](err)
		if !ok || said.Kind != task.AgentUnavailable || said.Detail != want {
			t.Errorf("of %d is said %v, want %s", answered, err, want)
		}
		if cause := errors.Unwrap(err); cause == nil || !strings.Contains(cause.Error(), "registry "+url+": ") {
			t.Errorf("of %d, the cause is %v", answered, cause)
		}
		status.Store(0)
		got, err := findAgent(t, f, agents.Config{AIC: aicV2})
		found := discovery.Found{Dialect: "aip/2", URL: "https://a.example", Why: "registry " + url + " says so"}
		if diff := cmp.Diff(found, got); diff != "" || err != nil {
			t.Errorf("after %d: %v (-want +got):\n%s", answered, err, diff)
		}
	}
}

// TestFresh: an agent that was found counts for a while, and one that was not is looked for again.
func TestFresh(t *testing.T) {
	f := &Find{Agents: []FoundAgent{{AIC: aicV2, URL: "https://a.example"}}}
	provision(t, f, nil)
	for aic, want := range map[string]bool{aicV1: false, aicV2: true} {
		var c gateway.AgentConfig
		if err := f.FindAgent(&agents.Config{AIC: aic}, &c); err != nil {
			t.Fatal(err)
		}
		if c.Finder.Fresh() {
			t.Errorf("%s counts before it is found", aic)
		}
		_, err := c.Finder.Find(t.Context())
		if c.Finder.Fresh() != want || (err == nil) != want {
			t.Errorf("%s counts: %t, %v", aic, c.Finder.Fresh(), err)
		}
	}
}

// TestFindAtDiscovery: a discovery server is asked by its own settings, after the registries.
func TestFindAtDiscovery(t *testing.T) {
	var status atomic.Int32
	status.Store(http.StatusNotFound)
	made := devpkitest.Make(t, devpki.Options{})
	url := discovers(t, made) + "/adp"
	f := &Find{Registries: []FindServer{{URL: registryOf(t, &status)}}, Discovery: []FindServer{{URL: url + "/",
		CA: []string{made.CA.Cert}, Cert: made.Leader.Cert, Key: made.Leader.Key}}}
	provision(t, f, nil)
	got, err := findAgent(t, f, agents.Config{AIC: listed})
	want := discovery.Found{Dialect: "aip/2", URL: "https://localhost:29043", Why: "discovery " + url + " says so"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestLost: the turns of an agent end when one of its registries does not have it as active any more, and no sooner.
func TestLost(t *testing.T) {
	var one, two atomic.Int32
	f := &Find{Registries: []FindServer{{URL: registryOf(t, &one)}, {URL: registryOf(t, &two)}}}
	provision(t, f, nil)
	var c gateway.AgentConfig
	if err := f.FindAgent(&agents.Config{AIC: aicV2}, &c); err != nil {
		t.Fatal(err)
	}
	why := make(chan *task.Error, 2)
	stop := c.Turns.Lost(func(err *task.Error) { why <- err })
	stopped := c.Turns.Lost(func(err *task.Error) { t.Errorf("a turn that is over ends with %v", err) })
	stopped()
	if len(why) > 0 {
		t.Error("a turn ends before anything is known")
	}
	two.Store(http.StatusForbidden)
	if err := f.feeds[1].Ask(t.Context(), aicV2); err != nil {
		t.Fatal(err)
	}
	if err := <-why; err.Kind != task.AgentTimeout || err.Detail != "the agent is not active at its registry any more" {
		t.Errorf("the turns end with %v", err)
	}
	stop()
	// Of two registries that say so, one is enough.
	one.Store(http.StatusForbidden)
	if err := f.feeds[0].Ask(t.Context(), aicV2); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var ends atomic.Int32
		defer c.Turns.Lost(func(*task.Error) { ends.Add(1) })()
		if synctest.Wait(); ends.Load() != 1 {
			t.Errorf("a turn ends %d times", ends.Load())
		}
	})
}

// TestOwnRegistry: without a URL, a registry is that of the option registry, and is followed once.
func TestOwnRegistry(t *testing.T) {
	var status atomic.Int32
	url := registryOf(t, &status)
	t.Setenv("OWN_REGISTRY", url)
	own := &Registry{URL: "{env.OWN_REGISTRY}/"}
	for text, f := range map[string]*Find{
		"no registry": {}, "one without a URL": {Registries: []FindServer{{}}},
		"one with its URL": {Registries: []FindServer{{URL: url}}},
	} {
		var feeds node.Feeds
		feed, err := own.Feed(&feeds, silent)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Provision(own, &feeds, silent); err != nil || len(f.feeds) != 1 || f.feeds[0] != feed {
			t.Errorf("%s: %v, the feeds are %v, want %v", text, err, f.feeds, feed)
		} else if got, err := findAgent(t, f, agents.Config{AIC: aicV2}); err != nil || got.URL != "https://a.example" {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		feed.Leave()
		f.Stop()
		if len(f.feeds) > 0 {
			t.Errorf("%s: the feeds are left, and kept", text)
		}
	}
	const want = "find: registry: its URL has a placeholder without a value: {env.NO_SUCH_REGISTRY}"
	f := &Find{Registries: []FindServer{{}}}
	err := f.Provision(&Registry{URL: "{env.NO_SUCH_REGISTRY}"}, new(node.Feeds), silent)
	if err == nil || err.Error() != want {
		t.Errorf("without a URL of the option: %v, want %s", err, want)
	}
}

// TestCA: the roots of a registry decide which one is believed.
func TestCA(t *testing.T) {
	made, other := devpkitest.Make(t, devpki.Options{}), devpkitest.Make(t, devpki.Options{})
	_, unknown := registrytest.Captured(t, "10-acs-unknown-aic")
	url := serve(t, made, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, unknown)
	})
	for what, tc := range map[string]struct {
		server FindServer
		own    *Registry
		known  bool
	}{
		"its own root": {FindServer{URL: url, CA: []string{made.CA.Cert}}, nil, true},
		"another root": {FindServer{URL: url, CA: []string{other.CA.Cert}}, nil, false},
		"the system's": {FindServer{URL: url}, &Registry{URL: url, CA: []string{made.CA.Cert}}, false},
		"its own root, at the URL of the option": {FindServer{CA: []string{made.CA.Cert}},
			&Registry{URL: url, CA: []string{other.CA.Cert}}, true},
		"another root, at the URL of the option": {FindServer{CA: []string{other.CA.Cert}},
			&Registry{URL: url, CA: []string{made.CA.Cert}}, false},
		"those of the option": {FindServer{}, &Registry{URL: url, CA: []string{made.CA.Cert}}, true},
	} {
		f := &Find{Registries: []FindServer{tc.server}}
		provision(t, f, tc.own)
		_, err := findAgent(t, f, agents.Config{AIC: aicV2})
		if known := registry.Is(err, registry.NotFound); known != tc.known {
			t.Errorf("with %s, the registry is believed: %t, %v", what, known, err)
		}
	}
}
