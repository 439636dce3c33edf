// SPDX-License-Identifier: Apache-2.0

package dialects

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/tidwall/gjson"
	"google.golang.org/protobuf/proto"
)

// back is an agent of one dialect, which the one gateway of the matrix fronts under /to/ and its name.
type back struct {
	name, dialect string // the dialect in the gateway's configuration, and the AID of an agent of AUN
	found         string // what a2a turns out to be
	path          string // of the agent's URL
	root          string // where the gateway fronts it without a path
	settings      string // of the agent
	echo          string // what is answered to "echo hi"
	asks          string // what its question says; default: which colour?
	slow          string // what keeps it at work; default: slow 300
	early         bool   // it speaks A2A before 0.2, the Agent API or AUN, which have no words for some things
	apart         bool   // each piece of a stream is a product of its own
	uncancelable  bool   // it has no words for a cancel: its task ends, and it may work on
	*recorder
}

// world is what the whole matrix shares: one gateway, one process for each agent, and where webhooks go.
type world struct {
	site   *site.Site
	url    string // of the plain site
	backs  []*back
	agents map[string]string // the URLs of the agents themselves, by program
	liar   *liar
	*inbox
}

// newWorld starts everything that the matrix needs.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{agents: make(map[string]string), inbox: newInbox(t)}
	var mu sync.Mutex
	var starting sync.WaitGroup
	for name, words := range site.SDKAgents {
		path, args := site.SDKCommand(t, words...)
		starting.Go(func() {
			url := site.RunAgent(t, path, args...)
			mu.Lock()
			defer mu.Unlock()
			w.agents[name] = url
		})
	}
	_, sample := site.SampleAgent(t)
	starting.Wait()
	w.agents["sample"] = "http://" + sample

	worker, heard := newAssignee()
	port := site.FreePort(t)
	w.url = fmt.Sprintf("http://127.0.0.1:%d", port)
	with := func(name, agent, settings, callers string) string {
		return fmt.Sprintf("\taip_gateway /%s* {\n\t\tagent %s {\n\t\t\t%s\n\t\t}\n\t\tcallers %s\n"+
			"\t\tidentity off\n\t}\n", name, agent, settings, callers)
	}
	plain := func(name, agent, callers string) string { return with(name, agent, "", callers) }
	var partners, sites, roots strings.Builder
	fmt.Fprintf(&partners, "http://127.0.0.1:%d {\n\taip_aun\n", port)
	partners.WriteString(plain("partner/one", "a2a/legacy "+w.agents["sample"], "aip"))
	partners.WriteString(plain("partner/two", "a2a/legacy "+w.agents["legacy-trpc"], "aip/2"))
	for _, b := range []struct {
		back
		agent string
	}{
		{back{name: "legacy-trpc", dialect: "a2a", found: "a2a/legacy", early: true}, w.agents["legacy-trpc"]},
		{back{name: "go-03", dialect: "a2a", found: "a2a/0.3"}, w.agents["a2a-go-03"]},
		{back{name: "go-10", dialect: "a2a", found: "a2a/1.0"}, w.agents["a2a-go-10"]},
		{back{name: "rest-10", dialect: "a2a/1.0-rest", path: "/rest"}, w.agents["a2a-go-10"]},
		{back{name: "grpc-10", dialect: "a2a/1.0-grpc"}, w.agents["a2a-go-10"]},
		{back{name: "js-03", dialect: "a2a", found: "a2a/0.3"}, w.agents["js-03"]},
		{back{name: "js-10", dialect: "a2a", found: "a2a/1.0"}, w.agents["js-10"]},
		{back{name: "partner-1", dialect: "aip", path: "/partner/one", echo: "echo: echo hi", early: true}, w.url},
		{back{name: "partner-2", dialect: "aip/2", path: "/partner/two", early: true}, w.url},
		{back{name: "runtime", dialect: "agentapi", path: "/process", early: true, settings: "cancel_path /stop",
			asks: "The agent calls the function colour. Answer with its output." + site.RuntimeCall},
			site.NewRuntimeAgent(t).URL},
		{back{name: "aun", dialect: "aun " + site.AUNAgent, path: "/aun", echo: "echo: echo hi", early: true,
			slow: "slow 300000", recorder: newAUNRecorder(t, site.AUNAgent)}, ""},
		{back{name: "aun-messages", dialect: "aun " + aunTalker, path: "/aun", echo: "echo: echo hi", early: true,
			slow: "slow 300000", settings: "idle_window 1m", apart: true, uncancelable: true,
			recorder: newAUNRecorder(t, aunTalker)}, ""},
		{back{name: "aun-assignee", dialect: "aun-assignee " + site.AUNWorker, echo: "echo: echo hi", early: true,
			slow: "slow 300000", recorder: heard}, ""},
	} {
		one := b.back
		one.asks, one.slow = cmp.Or(one.asks, "which colour?"), cmp.Or(one.slow, "slow 300")
		if one.recorder == nil {
			one.recorder = newRecorder(t, b.agent, one.dialect == "a2a/1.0-grpc")
		}
		if one.echo == "" {
			one.echo = "echo: hi"
		}
		rootPort := site.FreePort(t)
		one.root = fmt.Sprintf("http://127.0.0.1:%d", rootPort)
		fmt.Fprintf(&roots, "http://127.0.0.1:%d {\n%s}\n", rootPort,
			strings.Replace(with("", one.dialect+" "+one.url+one.path, one.settings, "a2a"), " /*", "", 1))
		w.backs = append(w.backs, &one)
		sites.WriteString(with("to/"+one.name, one.dialect+" "+one.url+one.path, one.settings,
			"aip aip/2 a2a agentapi aun\n\t\taid "+aunName(one.name)))
	}
	for i, it := range wrong {
		// The query keeps apart sites that have the same agent: their tasks are filed under its URL.
		sites.WriteString(
			plain(wrongPath(it.name), fmt.Sprintf("%s %s%s?%d", it.dialect, w.agents[it.agent], it.path, i), "aip"),
		)
	}
	w.liar = newLiar(t)
	sites.WriteString(plain("liar", "a2a "+w.liar.url, "aip"))
	fmt.Fprintf(
		&sites,
		"\taip_gateway /public* a2a %s {\n\t\tcallers aip aip/2 a2a\n\t\tidentity off\n\t\tpublic_url %s\n\t}\n",
		w.agents["a2a-go-03"],
		publicURL,
	)
	w.site = site.New(t)
	w.site.Start(site.Config{
		Store: "store pebble " + w.site.Dir + "/store" + w.aunOption(t) +
			"\n\t\tnotify {\n\t\t\tallow_networks 127.0.0.0/8\n\t\t}",
		OtherSites: partners.String() + sites.String() + "}\n" + roots.String(),
		Options:    "servers {\n\t\tprotocols h1 h2 h2c\n\t}",
	})
	w.assign(t, worker)
	return w
}

// mount is where the gateway fronts an agent.
func (w *world) mount(b *back) string { return w.url + "/to/" + b.name }

// mountFor is mount for the callers of a front.
func (w *world) mountFor(f front, b *back) string {
	if f.root {
		return b.root
	}
	return w.mount(b)
}

// recorder stands before an agent, and keeps what the gateway asks it.
type recorder struct {
	url string
	mu  sync.Mutex
	all []*exchange
}

// exchange is one request to an agent. All of it is under the recorder's mutex.
type exchange struct {
	method, path string
	body, answer []byte
	open         bool // its answer has not ended
}

// exchangeKey is the key of a request's exchange in its context.
type exchangeKey struct{}

// kept is how much of an answer a recorder keeps: the names that an agent gives come first.
const kept = 64 << 10

func newRecorder(t testing.TB, agent string, grpc bool) *recorder {
	t.Helper()
	target, err := url.Parse(agent)
	if err != nil {
		t.Fatal(err)
	}
	r := new(recorder)
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite:       func(p *httputil.ProxyRequest) { p.SetURL(target) },
		ModifyResponse: func(res *http.Response) error {
			res.Body = &recorded{res.Body, r, res.Request.Context().Value(exchangeKey{}).(*exchange)}
			return nil
		},
		// An agent that has gone is an agent that has gone; the test says what it thinks of that.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	both, http2 := new(http.Protocols), new(http.Protocols)
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	if http2.SetUnencryptedHTTP2(true); grpc {
		proxy.Transport = &http.Transport{Protocols: http2}
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		e := &exchange{method: req.Method, path: req.URL.Path, body: body, open: true}
		r.mu.Lock()
		r.all = append(r.all, e)
		r.mu.Unlock()
		defer func() {
			r.mu.Lock()
			e.open = false
			r.mu.Unlock()
		}()
		req.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), exchangeKey{}, e)))
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	server.Config.Protocols = both
	server.Start()
	r.url = server.URL
	return r
}

// recorded is the body of an answer on its way.
type recorded struct {
	io.ReadCloser
	r *recorder
	e *exchange
}

func (b *recorded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	b.e.answer = append(b.e.answer, p[:min(n, kept-len(b.e.answer))]...)
	return n, err
}

// task returns the task that a request is about, in any dialect.
func (e *exchange) task() (id string, cancels bool) {
	if method, ok := strings.CutPrefix(e.path, "/lf.a2a.v1.A2AService/"); ok {
		m := new(a2apb.CancelTaskRequest) // the id is the same field in all requests about a task
		if strings.HasPrefix(method, "Send") || len(e.body) < 5 || proto.Unmarshal(e.body[5:], m) != nil {
			return "", false
		}
		return m.GetId(), method == "CancelTask"
	}
	if rest, ok := strings.CutPrefix(e.path, "/rest/tasks/"); ok {
		id, verb, _ := strings.Cut(rest, ":")
		return id, verb == "cancel"
	}
	v := gjson.ParseBytes(e.body)
	if session := v.Get("session_id").Str; session != "" { // the Agent API
		return session, e.path == "/stop"
	}
	params := v.Get("params")
	for _, member := range []string{"message", "command"} { // AIP
		if m := params.Get(member); m.Get("senderRole").Exists() {
			return m.Get("taskId").Str, m.Get("command").Str == "cancel"
		}
	}
	switch v.Get("method").Str {
	case "tasks/cancel", "CancelTask":
		cancels = true
	case "task.cancel": // AUN
		return params.Get("task_id").Str, true
	}
	return params.Get("id").Str, cancels
}

// named returns the id of a task as it stands in requests and answers.
func (e *exchange) named(id string) []byte {
	if strings.HasPrefix(e.path, "/lf.a2a.v1.A2AService/") {
		return []byte(id)
	}
	return []byte(`"` + id + `"`)
}

// asked says what the gateway asked the agent about the task that began with a word that no other task began with: how
// many requests there were, how many of them to cancel it, and how many have not ended.
func (r *recorder) asked(word string) (requests, cancels, open int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var began []byte
	for _, e := range r.all {
		if bytes.Contains(e.body, []byte(word)) {
			began = append(append(began, e.body...), e.answer...)
		}
	}
	for _, e := range r.all {
		id, cancel := e.task()
		if !bytes.Contains(e.body, []byte(word)) && (id == "" || !bytes.Contains(began, e.named(id))) {
			continue
		}
		requests++
		if cancel {
			cancels++
		}
		if e.open {
			open++
		}
	}
	return requests, cancels, open
}
