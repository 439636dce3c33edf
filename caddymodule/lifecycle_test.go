// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/caddymodule/storepebble"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/freeport"
	"github.com/aip-gateway/aip-gateway/internal/legacyagent"
	"github.com/aip-gateway/aip-gateway/node"
)

// site is a running configuration that tests change under its own feet.
type site struct {
	t     *testing.T
	addr  string
	dir   string
	agent string
}

// partner returns the arguments and the block of aip_gateway for the agent of the site, with more options.
func (s *site) partner(more string) string {
	return "a2a/legacy " + s.agent + " {\nidentity off\n" + more + "\n}\n"
}

func newSite(t *testing.T) *site {
	t.Helper()
	agent := legacyagent.New(legacyagent.Options{})
	server := httptest.NewServer(agent)
	s := &site{t: t, addr: freeAddr(t), dir: t.TempDir(), agent: server.URL}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
		server.Close()
		agent.Close()
		// Streams that have outlived their requests end at random times.
		asynctest.Eventually(t, "after the stop, there are no references to the store", func() bool {
			return s.references() == 0
		})
	})
	return s
}

func freeAddr(t *testing.T) string {
	t.Helper()
	port, err := freeport.Take()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("127.0.0.1:", port)
}

func (s *site) store() node.Store {
	return node.Store{Driver: &storepebble.Store{Dir: s.dir}, Name: "pebble"}
}

// references returns how many users the store has. A release that closes it is waited for: the directory of the store
// must not be removed meanwhile.
func (s *site) references() int {
	return process.Users(s.store())
}

// config returns a configuration; store and gateway are what stands in the blocks.
func (s *site) config(store, gateway string) []byte {
	s.t.Helper()
	input := fmt.Sprintf(`{
	admin off
	auto_https off
	aip {
		store pebble %s {
			%s
		}
		drain 1s
	}
}
http://%s {
	aip_gateway a2a/legacy %s {
		identity off
		%s
	}
	respond "next" 404
}
`, s.dir, store, s.addr, s.agent, gateway)
	out := adapt(s.t, string(caddyfile.Format([]byte(input))))
	if strings.HasPrefix(out, "error") {
		s.t.Fatal(out)
	}
	return []byte(out)
}

func (s *site) load(config []byte) error {
	s.t.Helper()
	err := caddy.Load(config, true)
	listensAlone(s.t, s.addr)
	return err
}

// listensAlone waits until no server of another configuration listens at an address as well: Caddy may close its
// listener when the load has returned, and it would take connections until then.
func listensAlone(t *testing.T, addr string) {
	t.Helper()
	_, port, _ := strings.Cut(addr, ":")
	asynctest.Eventually(t, "one server listens at "+addr, func() bool {
		return caddy.ListenerUsage("tcp", ":"+port)+caddy.ListenerUsage("tcp", addr) <= 1
	})
}

func (s *site) mustLoad(config []byte) {
	s.t.Helper()
	if err := s.load(config); err != nil {
		s.t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections() // Caddy closes them, too, perhaps just when the next call is sent
}

// open returns what the running configuration has open.
func (s *site) open() *node.Node {
	if n := process.Running(); n != nil && n.Store.Location() == s.dir {
		return n
	}
	return nil
}

func (s *site) call(ctx context.Context, command, id, text string) (state string, err error) {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"rpc","params":{"message":{"id":%q,"senderId":"leader",`+
		`"command":%q,"taskId":%q,"dataItems":[{"type":"text","text":%q}]}}}`, rand.Text(), command, id, text)
	res, err := overReload(func() (*http.Response, error) { return s.post(ctx, body) }) // with the same message id
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var answer struct {
		Result struct{ Status struct{ State string } }
		Error  json.RawMessage
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return "", fmt.Errorf("status %d: %w", res.StatusCode, err)
	}
	if answer.Error != nil {
		return "", fmt.Errorf("%s", answer.Error)
	}
	return answer.Result.Status.State, nil
}

// overReload sends a request again, a few times, while its connection ends without an answer: when a reload closed
// Caddy's old listener, that had not accepted the connection yet, or had not read from it.
func overReload(send func() (*http.Response, error)) (res *http.Response, err error) {
	for range 10 {
		if res, err = send(); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.EOF) {
			return res, err
		}
	}
	return nil, err
}

func (s *site) post(ctx context.Context, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.addr+"/rpc", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Close = true // a reload closes idle connections, perhaps just when a request is sent on one
	return http.DefaultClient.Do(req)
}

func (s *site) want(command, id, text, state string) {
	s.t.Helper()
	got, err := s.call(s.t.Context(), command, id, text)
	if err != nil || got != state {
		s.t.Errorf("%s %s: got %q, %v; want %q", command, id, got, err, state)
	}
}

func (s *site) wantReferences(want int) {
	s.t.Helper()
	if n := s.references(); n != want {
		s.t.Errorf("the store has %d references, want %d", n, want)
	}
}

func TestReloadKeepsTheStore(t *testing.T) {
	s := newSite(t)
	s.mustLoad(s.config("", ""))
	before := s.open()
	s.want("start", "t1", "hello", "awaiting-completion")
	for i := range 3 {
		s.mustLoad(s.config("sync always", fmt.Sprintf("timeouts {\n response %ds\n }", 10+i)))
		s.wantReferences(1)
	}
	if s.open() != before {
		t.Error("a reload opened the store anew")
	}
	if n := before.Configurations(); n != 1 {
		t.Errorf("%d configurations have a say in the store's settings, want 1", n)
	}
	s.want("complete", "t1", "", "completed")
}

func TestFailingConfigurationChangesNothing(t *testing.T) {
	s := newSite(t)
	s.mustLoad(s.config("sync state", ""))
	before := s.open()
	taken, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := func(addr string) []byte { return fmt.Appendf(nil, `":%s"`, addr[strings.LastIndex(addr, ":")+1:]) }
	good := s.config("sync never", "")
	for name, config := range map[string][]byte{
		"an AIC that is none": bytes.Replace(s.config("sync never", "aic "+groupAIC), []byte(groupAIC),
			[]byte(groupAIC[:31]+"?"), 1),
		"an unknown identity mode": bytes.Replace(good, []byte(`"identity": "off"`), []byte(`"identity": "maybe"`), 1),
		"an unknown dialect":       bytes.Replace(good, []byte("a2a/legacy"), []byte("a2a/9.9"), 1),
		"too small a store": bytes.Replace(good, []byte(`"driver": "pebble"`),
			[]byte(`"driver": "pebble", "max_bytes": 1`), 1),
		"a port that is taken":     bytes.Replace(good, port(s.addr), port(taken.Addr().String()), 1),
		"a directory that is none": bytes.Replace(good, []byte(s.dir), []byte("/dev/null/store"), 1),
		"a module that is none":    bytes.Replace(good, []byte(`"static_response"`), []byte(`"no_such_handler"`), 1),
	} {
		if err := s.load(config); err == nil {
			t.Errorf("%s: the configuration was accepted", name)
		}
		s.wantReferences(1)
		if s.open() != before {
			t.Fatalf("%s: the store was opened anew", name)
		}
		in := before.InForce().Host().(*App).store.Settings()
		if n := before.Configurations(); n != 1 || in.Sync.String() != "state" {
			t.Errorf("%s: the store's settings are those of the failed configuration: %+v, of %d", name, in, n)
		}
		s.want("start", "after "+name, "hello", "awaiting-completion")
	}
}

// TestFailedStartIsTakenBack: the agents and the metrics that are shown are those of the running configuration while
// another one starts, whatever its store, and after another app of it has failed to start.
func TestFailedStartIsTakenBack(t *testing.T) {
	s := newSite(t)
	s.mustLoad(s.config("", ""))
	found := func() (names []string) {
		for _, e := range process.Agents.Entries(t.Context()) {
			names = append(names, e.Name)
		}
		return names
	}
	before := newest()
	var other *caddy.Config
	config := bytes.Replace(s.config("", "aic "+groupAIC), []byte(s.dir), []byte(t.TempDir()), 1)
	if err := json.Unmarshal(config, &other); err != nil {
		t.Fatal(err)
	}
	ctx, err := caddy.ProvisionContext(other)
	if err != nil {
		t.Fatal(err)
	}
	app, err := ctx.App("aip")
	if err != nil {
		t.Fatal(err)
	}
	if err := app.(*App).Start(); err != nil {
		t.Fatal(err)
	}
	measured := func(of *App) (names []string) {
		families, err := of.metrics.Gather()
		if err != nil {
			t.Error(err)
		}
		for _, f := range families {
			if strings.HasPrefix(f.GetName(), "aip_") {
				names = append(names, f.GetName())
			}
		}
		return names
	}
	want := measured(before)
	if diff := cmp.Diff([]string{s.agent}, found()); diff != "" || newest() != before {
		t.Errorf("the other one has started (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, measured(app.(*App))); diff != "" {
		t.Errorf("the metrics of the other one, which has started (-want +got):\n%s", diff)
	}
	if err := errors.Join(app.(*App).Stop(), app.(*App).Cleanup()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{s.agent}, found()); diff != "" || newest() != before {
		t.Errorf("the other one was stopped (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, measured(app.(*App))); diff != "" {
		t.Errorf("the metrics of the other one, which was stopped (-want +got):\n%s", diff)
	}
}

func TestCallsOutliveTheirConfiguration(t *testing.T) {
	s := newSite(t)
	inner, asked, answers := legacyagent.New(legacyagent.Options{}), make(chan struct{}, 10), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			asked <- struct{}{}
			<-answers
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.Close()
		inner.Close()
	})
	s.agent = server.URL
	s.mustLoad(s.config("", ""))
	type result struct {
		state string
		err   error
	}
	results := make(chan result, 1)
	go func() {
		state, err := s.call(t.Context(), "start", "slow", "hello")
		results <- result{state, err}
	}()
	<-asked // the agent works on the task

	// The route goes, and with it the last handler that needs the store.
	s.mustLoad([]byte(adapt(t, fmt.Sprintf("{\n\tadmin off\n\tauto_https off\n}\nhttp://%s {\n\trespond gone\n}\n",
		s.addr))))
	close(answers)
	if r := <-results; r.err != nil || r.state != "awaiting-completion" {
		t.Errorf("a call under way got %q, %v", r.state, r.err)
	}
	asynctest.Eventually(s.t, "the store is closed", func() bool { return s.references() == 0 })

	s.mustLoad(s.config("", ""))
	s.want("complete", "slow", "", "completed")
}

// TestRequestsOutliveTheirConfiguration calls a handler after its Cleanup, as a connection does that was opened before
// a reload and is used after it.
func TestRequestsOutliveTheirConfiguration(t *testing.T) {
	s := newSite(t)
	s.mustLoad(s.config("", ""))
	s.want("start", "t1", "hello", "awaiting-completion")
	old := s.open().InForce().Host().(*App).members[0]
	ask := func(method, params string) string {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, params)
		answer := httptest.NewRecorder()
		err := old.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/",
			strings.NewReader(body)), nil)
		if err != nil {
			t.Error(err)
		}
		return answer.Body.String()
	}
	calls := map[string]string{
		"rpc":              `"message":{"senderId":"leader","command":"get","taskId":"t1"}`,
		"notification/get": `"taskId":"t1"`,
	}

	s.mustLoad(s.config("", "heartbeat 5s"))
	for method, params := range calls {
		if got := ask(method, params); !strings.Contains(got, `"result"`) {
			t.Errorf("%s after a reload: %s", method, got)
		}
	}
	s.wantReferences(1)

	// The route goes, and with it the store.
	s.mustLoad([]byte(adapt(t, fmt.Sprintf("{\n\tadmin off\n\tauto_https off\n}\nhttp://%s {\n\trespond gone\n}\n",
		s.addr))))
	closed := func() {
		t.Helper()
		for method, params := range calls {
			if got := ask(method, params); !strings.Contains(got, "STORE_UNAVAILABLE") {
				t.Errorf("%s after the store was closed: %s", method, got)
			}
		}
	}
	closed()
	s.mustLoad(s.config("", ""))
	closed() // it is open again, but with another life-cycle
	s.wantReferences(1)
}

func TestStreamsAreDrained(t *testing.T) {
	s := newSite(t)
	s.mustLoad(s.config("", ""))
	body := `{"jsonrpc":"2.0","id":1,"method":"stream","params":{"message":{"id":"m","senderId":"leader",` +
		`"command":"start","taskId":"t1","dataItems":[{"type":"text","text":"hello"}]}}}`
	res, err := http.Post("http://"+s.addr+"/stream", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	ended := make(chan string, 1)
	go func() {
		content, _ := io.ReadAll(res.Body)
		ended <- string(content)
	}()
	asynctest.Eventually(s.t, "the task rests", func() bool {
		state, _ := s.call(t.Context(), "get", "t1", "")
		return state == "awaiting-completion"
	})
	s.mustLoad(s.config("", "heartbeat 5s"))
	got := <-ended
	if !strings.Contains(got, "retry: ") || !strings.Contains(got, "awaiting-completion") {
		t.Errorf("the stream ended with\n%s", got)
	}
	if process.Streams.Total() != 0 {
		t.Errorf("%d streams are still counted", process.Streams.Total())
	}
}

func TestTwoAgentsUnderOneName(t *testing.T) {
	s := newSite(t)
	aic := "aic 10001000011K912345E789ABCDEF2353"
	config := bytes.Replace(s.config("", aic), []byte(`"routes": [`),
		fmt.Appendf(nil, `"routes": [{"handle": [{"handler": "aip_gateway", "identity": "off",
		"aic": "10001000011K912345E789ABCDEF2353", "agent": {"dialect": "a2a/legacy", "url": "http://127.0.0.1:1/"}}]},`), 1)
	err := s.load(config)
	if err == nil || !strings.Contains(err.Error(), "give each its own aic") {
		t.Errorf("two agents under one AIC: %v", err)
	}
}
