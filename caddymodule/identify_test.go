// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/trust/authn"
)

// composed is a site with aip_identify and other handlers before its aip_gateway, over TLS.
type composed struct {
	*site
	pki    *devpki.PKI
	leader tls.Certificate
	roots  *x509.CertPool

	mu    sync.Mutex
	asked []string // what the server of forward_auth was asked
}

// compose starts the site. before are the directives before aip_gateway, in which AUTH is the address of a server for
// forward_auth that allows all but cancels, and gateway is what the block of aip_gateway has.
func compose(t *testing.T, identify, before, gateway string) *composed {
	t.Helper()
	c := &composed{site: newSite(t)}
	c.pki = devpkitest.Make(t, devpki.Options{Hosts: []string{"localhost"}})
	c.leader, c.roots = devpkitest.KeyPair(t, c.pki.Leader), devpkitest.Roots(t, c.pki)
	auth := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked = append(c.asked, strings.TrimSpace(fmt.Sprintln(r.Header.Get("X-Leader"), r.Header.Get("X-Proof"),
			r.Header.Get("X-Method"), r.Header.Get("X-Command"), len(body))))
		if r.Header.Get("X-Command") == "cancel" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	t.Cleanup(auth.Close)
	_, port, _ := strings.Cut(c.addr, ":")
	input := fmt.Sprintf(`{
	admin off
	auto_https off
	default_bind 127.0.0.1
	aip {
		store pebble %s
		drain 1s
	}
}
https://localhost:%s {
	tls %s %s {
		client_auth {
			mode verify_if_given
			trust_pool file %s
		}
	}
	aip_identify %s
	%s
	aip_gateway a2a/legacy %s {
		callers aip a2a agentapi
		%s
	}
}
`, c.dir, port, c.pki.Server.Cert, c.pki.Server.Key, c.pki.CA.Cert, identify,
		strings.ReplaceAll(before, "AUTH", strings.TrimPrefix(auth.URL, "http://")), c.agent, gateway)
	out := adapt(t, string(caddyfile.Format([]byte(input))))
	if strings.HasPrefix(out, "error") {
		t.Fatal(out)
	}
	c.mustLoad([]byte(out))
	return c
}

// tls returns the configuration of a caller, with the certificate of the Leader or with none.
func (c *composed) tls(verified bool) *tls.Config {
	config := &tls.Config{RootCAs: c.roots, ServerName: "localhost"}
	if verified {
		config.Certificates = []tls.Certificate{c.leader}
	}
	return config
}

// header sends a request, and returns the header of the answer.
func (c *composed) header(verified bool, method, path, body string) http.Header {
	c.t.Helper()
	res, _ := c.exchange(verified, method, path, body)
	return res.Header
}

// send sends a request. It returns the status and the answer.
func (c *composed) send(verified bool, method, path, body string, header ...string) (int, string) {
	c.t.Helper()
	res, answer := c.exchange(verified, method, path, body, header...)
	return res.StatusCode, answer
}

func (c *composed) exchange(verified bool, method, path, body string, header ...string) (*http.Response, string) {
	c.t.Helper()
	transport := &http.Transport{TLSClientConfig: c.tls(verified), ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(c.t.Context(), method, "https://"+c.addr+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Host = "localhost"
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res, string(answer)
}

// rpc is a request of AIP.
func (c *composed) rpc(command, id, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"rpc","params":{"message":{"id":"m-%s-%s","senderId":%q,`+
		`"command":%q,"taskId":%q,"dataItems":[{"type":"text","text":%q}]}}}`,
		command, id, c.pki.Leader.AIC, command, id, text)
}

// a2aCall is a request of A2A over JSON-RPC.
func a2aCall(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
}

const sendREST = `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}}`

// TestIdentifyForwardAuth: Caddy's own forward_auth is asked about callers and commands of every dialect, and what it
// denies does not reach the gateway. It gets no body, and the gateway the whole one.
func TestIdentifyForwardAuth(t *testing.T) {
	c := compose(t, "{\n callers aip a2a agentapi\n }", `
	forward_auth AUTH {
		uri /check
		header_up X-Leader {aip.leader}
		header_up X-Proof {aip.proof}
		header_up X-Method {aip.method}
		header_up X-Command {aip.command}
	}`, "identity optional")
	aic := string(c.pki.Leader.AIC)
	large := strings.Repeat("x", 300<<10)
	for _, tc := range []struct {
		name           string
		verified       bool
		path, body     string
		header         []string
		status         int
		answer, asking string
	}{
		{"AIP", true, "/rpc", c.rpc("start", "t1", "hello"), nil, 200, `"awaiting-completion"`,
			aic + " certificate rpc start 0"},
		{"large", true, "/rpc", c.rpc("start", "t2", large), nil, 200, `"awaiting-completion"`,
			aic + " certificate rpc start 0"},
		{"cancel", true, "/rpc", c.rpc("cancel", "t1", ""), nil, 403, "", aic + " certificate rpc cancel 0"},
		{"nobody", false, "/", a2aCall("message/send", `{"message":{"kind":"message","messageId":"m","role":"user",`+
			`"parts":[{"kind":"text","text":"hello"}]}}`), nil, 200, `"completed"`, "message/send start 0"},
		{"A2A 1.0", true, "/", a2aCall("SendMessage", sendREST), []string{"A2A-Version", "1.0"}, 200,
			"TASK_STATE_COMPLETED", aic + " certificate SendMessage start 0"},
		{"REST", true, "/message:send", sendREST, []string{"A2A-Version", "1.0"}, 200, "TASK_STATE_COMPLETED",
			aic + " certificate SendMessage start 0"},
		{"REST cancel", true, "/tasks/t1:cancel", "{}", []string{"A2A-Version", "1.0"}, 403, "",
			aic + " certificate CancelTask cancel 0"},
		{"Agent API", true, "/process", `{"input":[{"role":"user","content":[{"type":"text","text":"hello"}]}]}`, nil, 200,
			"response", aic + " certificate process start 0"},
	} {
		status, answer := c.send(tc.verified, "POST", tc.path, tc.body, tc.header...)
		c.mu.Lock()
		asked := c.asked
		c.asked = nil
		c.mu.Unlock()
		if status != tc.status || !strings.Contains(answer, tc.answer) {
			t.Errorf("%s: %d, %.300s", tc.name, status, answer)
		}
		for i := range asked { // an empty header leaves a space
			asked[i] = strings.Join(strings.Fields(asked[i]), " ")
		}
		if diff := cmp.Diff([]string{tc.asking}, asked); diff != "" {
			t.Errorf("%s: the server is asked (-want +got):\n%s", tc.name, diff)
		}
	}
}

// TestIdentifyExpressions: CEL and the matcher decide by what was found, in every dialect, for gRPC as well.
func TestIdentifyExpressions(t *testing.T) {
	c := compose(t, "{\n callers aip a2a agentapi\n }", `
	@nobody expression `+"`{aip.leader} == '' && {aip.command} != 'get'`"+`
	error @nobody "nobody may do this" 403
	@cancels aip_method cancel message/stream
	error @cancels "not here" 405
	header X-Command {aip.command}`, "identity optional")
	for _, tc := range []struct {
		name       string
		verified   bool
		path, body string
		status     int
		answer     string
	}{
		{"a start", true, "/rpc", c.rpc("start", "t1", "hello"), 200, `"awaiting-completion"`},
		{"a start of nobody", false, "/rpc", c.rpc("start", "t2", "hello"), 403, ""},
		{"a get of nobody", false, "/rpc", c.rpc("get", "t1", ""), 200, "-32001"},
		{"what is not read", false, "/rpc", "{", 403, ""},
		{"a cancel", true, "/rpc", c.rpc("cancel", "t1", ""), 405, ""},
		{"a cancel by REST", true, "/tasks/t1:cancel", "{}", 405, ""},
		{"a method", true, "/", a2aCall("message/stream", `{}`), 405, ""},
		{"another method", true, "/", a2aCall("tasks/get", `{"id":"x"}`), 200, "-32001"},
		{"a stranger's large body", false, "/rpc", c.rpc("get", "t1", strings.Repeat("x", 70<<10)), 403, ""},
	} {
		if status, answer := c.send(tc.verified, "POST", tc.path, tc.body); status != tc.status ||
			!strings.Contains(answer, tc.answer) {
			t.Errorf("%s: %d, %.300s, want %d", tc.name, status, answer, tc.status)
		}
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "a2a-version", "1.0")
	client := func(verified bool) a2apb.A2AServiceClient {
		conn, err := grpc.NewClient(c.addr, grpc.WithTransportCredentials(credentials.NewTLS(c.tls(verified))),
			grpc.WithAuthority("localhost"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return a2apb.NewA2AServiceClient(conn)
	}
	hello := &a2apb.SendMessageRequest{Message: &a2apb.Message{MessageId: "m", Role: a2apb.Role_ROLE_USER,
		Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: "hello"}}}}}
	sent, err := client(true).SendMessage(ctx, hello)
	if err != nil || sent.GetTask().GetStatus().GetState() != a2apb.TaskState_TASK_STATE_COMPLETED {
		t.Errorf("gRPC: %v, %v", sent, err)
	}
	if _, err := client(false).SendMessage(ctx, hello); status.Code(err) != codes.PermissionDenied {
		t.Errorf("gRPC, a start of nobody: %v", err)
	}
	_, err = client(true).CancelTask(ctx, &a2apb.CancelTaskRequest{Id: sent.GetTask().GetId()})
	if err == nil || !strings.Contains(err.Error(), "405") {
		t.Errorf("gRPC, a cancel: %v", err)
	}
	stream, err := client(true).SendStreamingMessage(ctx, hello)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for err == nil {
		if _, err = stream.Recv(); err == nil {
			n++
		}
	}
	if err != io.EOF || n == 0 {
		t.Errorf("gRPC, a stream: %d events, then %v", n, err)
	}
}

// TestIdentifyAfterwards: what is known once a request was answered is what aip_gateway knows of it.
func TestIdentifyAfterwards(t *testing.T) {
	c := compose(t, "", `
	header >X-Late "{aip.leader} {aip.command} {aip.proof} {aip.task}"
	header >X-Early {http.vars.early}
	vars early "{aip.method} {aip.command}"`, "identity optional")
	aic := string(c.pki.Leader.AIC)
	header := c.header(true, "POST", "/rpc", c.rpc("start", "t1", "hello"))
	got := []string{header.Get("X-Late"), header.Get("X-Early")}
	if diff := cmp.Diff([]string{aic + " start certificate t1", "rpc start"}, got); diff != "" {
		t.Errorf("a start (-want +got):\n%s", diff)
	}
	header = c.header(false, "POST", "/rpc", c.rpc("get", "t1", ""))
	got = []string{header.Get("X-Late"), header.Get("X-Early")}
	if diff := cmp.Diff([]string{"unverified:" + aic + " get  t1", "rpc get"}, got); diff != "" {
		t.Errorf("a get of nobody (-want +got):\n%s", diff)
	}
}

// TestIdentifyOff: with identity off no caller has a proof, whatever its certificate, and once a call was answered its
// Leader is the one that it names.
func TestIdentifyOff(t *testing.T) {
	for identify, early := range map[string]string{"identity off": "|", "": "AIC|certificate"} {
		c := compose(t, "{\n callers aip a2a agentapi\n "+identify+"\n }", `
	header >X-Late "{aip.leader}|{aip.proof}"
	header >X-Early {http.vars.early}
	vars early "{aip.leader}|{aip.proof}"`, "identity off")
		aic := string(c.pki.Leader.AIC)
		header := c.header(true, "POST", "/rpc", strings.ReplaceAll(c.rpc("start", "t1", "hello"), aic, "another"))
		got := []string{header.Get("X-Early"), header.Get("X-Late")}
		if diff := cmp.Diff([]string{strings.Replace(early, "AIC", aic, 1), "another|"}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", identify, diff)
		}
	}
}

// TestIdentifyOtherwise: a gateway with other dialects than aip_identify, and a matcher without one, let nothing in.
//
// Promise: what decides in front of `aip_gateway` is shown another call than the one that is carried out
func TestIdentifyOtherwise(t *testing.T) {
	const before = "@cancels aip_method cancel\n\terror @cancels 405"
	c := compose(t, "/else/* {\n callers a2a/1.0\n }", before, "identity optional")
	if status, answer := c.send(true, "POST", "/rpc", c.rpc("start", "t1", "hello")); status != 500 {
		t.Errorf("without aip_identify: %d %s", status, answer)
	}
	c = compose(t, "{\n limits {\n body 1KiB\n }\n }", before, "identity optional")
	if status, answer := c.send(true, "POST", "/rpc", c.rpc("start", "t1", strings.Repeat("x", 1000))); status != 413 {
		t.Errorf("beyond the limits: %d %s", status, answer)
	}
	c = compose(t, "{\n callers a2a/1.0\n }", before, "identity optional")
	for _, command := range []string{"start", "cancel"} {
		if _, answer := c.send(true, "POST", "/rpc", c.rpc(command, "t1", "hello")); !strings.Contains(answer, "otherwise") {
			t.Errorf("%s, with other dialects: %s", command, answer)
		}
	}
}

// TestIdentifyProofs: who has another proof than a certificate is known to handlers and to aip_gateway, which accepts
// what was found only where it would have judged alike.
func TestIdentifyProofs(t *testing.T) {
	key, line, err := authn.MakeKey("library")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	identity := "identity optional {\n mtls\n keys " + file + "\n }\n"
	const before = `header >X-Who "{aip.leader} {aip.proof}"
	@nobody expression ` + "`{aip.leader} == ''`" + `
	error @nobody 403`
	list := a2aCall("ListTasks", `{}`)
	for _, tc := range []struct {
		name, identify, gateway string
		authorization           string
		status                  int
		who, answer             string
	}{
		{"the same", identity, identity, "Bearer " + key, 200, "key:library key", `"tasks"`},
		{"a wrong key", identity, identity, "Bearer aipk_" + strings.Repeat("A", 43), 403, "", ""},
		{"the gateway knows no keys", identity, "identity optional", "Bearer " + key, 401, "key:library key",
			"judged otherwise"},
		{"aip_identify knows no keys", "", identity, "Bearer " + key, 403, "", ""},
	} {
		c := compose(t, "{\n callers aip a2a agentapi\n"+tc.identify+"}", before, tc.gateway)
		res, answer := c.exchange(false, "POST", "/", list, "A2A-Version", "1.0", "Authorization", tc.authorization)
		if res.StatusCode != tc.status || res.Header.Get("X-Who") != tc.who && tc.status != 403 ||
			!strings.Contains(answer, tc.answer) {
			t.Errorf("%s: %d, %q, %s", tc.name, res.StatusCode, res.Header.Get("X-Who"), answer)
		}
	}
}

// TestMethodsOfNone: a matcher of no method is refused: a configuration that denies by it would deny nothing.
func TestMethodsOfNone(t *testing.T) {
	var c caddy.Config
	if err := json.Unmarshal([]byte(`{"admin": {"disabled": true}, "apps": {"http": {"servers": {"a": {"listen": [":0"],
		"routes": [{"match": [{"aip_method": []}]}]}}}}}`), &c); err != nil {
		t.Fatal(err)
	}
	if err := caddy.Validate(&c); err == nil || !strings.Contains(err.Error(), "needs at least one method or command") {
		t.Errorf("the error is %v", err)
	}
}
