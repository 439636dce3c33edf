// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/aip-gateway/aip-gateway/trust/token/tokentest"
)

const protected = "10001000011K912345E789ABCDEF2353" // the Partner of the tests of access tokens

// aacSite is a gateway that requires access tokens, each for one call.
type aacSite struct {
	*site.Site
	config site.Config
	issuer *tokentest.Issuer
	agent  *site.FakeAgent
	aic    string // of the Leader
}

func serveAAC(t *testing.T, answer func(http.ResponseWriter, *http.Request, site.Heard)) *aacSite {
	t.Helper()
	a := &aacSite{issuer: tokentest.New(t), agent: site.NewFakeAgent(t, answer),
		aic: string(site.Certificates(t).Leader.AIC)}
	a.config = site.Config{Options: "debug", Handle: `aip_gateway a2a/legacy ` + a.agent.URL + ` {
		aic ` + protected + `
		callers aip a2a
		aac {
			issuer ` + a.issuer.URL + `
			audience the-alias
			require
			replay refuse
			leeway 1ms
			allow_networks 127.0.0.0/8 ::1/128
		}
	}`}
	a.Site = site.Serve(t, a.config)
	return a
}

// claims returns the claims of a good token of the Leader, with changes.
func (a *aacSite) claims(id string, changes map[string]any) map[string]any {
	now := time.Now()
	c := map[string]any{"sub": "the-person-behind", "aud": "acps:agent:" + protected, "exp": now.Add(time.Hour).Unix(),
		"iat": now.Add(-time.Second).Unix(), "jti": id, "scope": "acps.skill.invoke:a",
		"act": map[string]any{"sub": "agent:" + a.aic}}
	maps.Copy(c, changes)
	return c
}

// call sends a command with a token, and returns the status, the code of the error, and the answer.
func (a *aacSite) call(c *site.Caller, method, command, taskID, token string) (status int, code int64, answer string) {
	a.T.Helper()
	return post(a.T, c, "/"+method, string(site.AIPBody(method, a.aic, command, taskID, "hello", "")), token)
}

// post sends a body with a token, and returns the status, the code of the error, and the answer.
func post(t testing.TB, c *site.Caller, path, body, token string) (status int, code int64, answer string) {
	t.Helper()
	var header []string
	if token != "" {
		header = []string{"Authorization", "Bearer " + token}
	}
	res, raw := c.Post(path, []byte(body), header...)
	var got struct{ Error struct{ Code int64 } }
	_ = json.Unmarshal(raw, &got) // a stream is none
	return res.StatusCode, got.Error.Code, string(raw)
}

// TestAAC calls with access tokens beside mutual TLS, before and after a restart.
//
// Promise: an agent acts for somebody who has not asked it to
func TestAAC(t *testing.T) {
	t.Parallel()
	a := serveAAC(t, nil)
	leader := site.LeaderOf(t, a.URL())
	leaf := devpkitest.KeyPair(t, site.Certificates(t).Leader).Leaf
	other := string(site.Certificates(t).LeaderV1.AIC)
	var tokens []string
	sign := func(id string, changes map[string]any) string {
		token := a.issuer.Sign(t, a.claims(id, changes))
		tokens = append(tokens, token)
		return token
	}
	forged := tokentest.New(t).Sign(t, a.claims("forged", map[string]any{"iss": a.issuer.URL}))
	used := sign("used", map[string]any{"cnf": map[string]any{"x5t#S256": tokentest.Thumbprint(leaf)}})
	for i, tt := range []struct {
		name, token string
		want        int64
	}{
		{"no token", "", -32008},
		{"bound to the certificate", used, 0},
		{"used before", used, -32010},
		{"no token at all", "hello", -32010},
		{"forged", forged, -32010},
		{"for another Partner", sign("a", map[string]any{"aud": "acps:agent:" + other}), -32010},
		{"for the alias", sign("b", map[string]any{"aud": []string{"the-alias"}}), 0},
		{"expired", sign("c", map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}), -32010},
		{"without jti", sign("d", map[string]any{"jti": nil}), -32010},
		{"of another actor", sign("e", map[string]any{"act": map[string]any{"sub": "agent:" + other}}), -32009},
		{"bound to another certificate", sign("f", map[string]any{"cnf": map[string]any{"x5t#S256": "AAAA"}}), -32009},
	} {
		before := len(a.agent.Requests(""))
		_, code, answer := a.call(leader, "rpc", "start", fmt.Sprint("task-", i), tt.token)
		if code != tt.want {
			t.Errorf("%s: %s, want %d", tt.name, answer, tt.want)
		}
		if asked := len(a.agent.Requests("")) > before; asked != (tt.want == 0) {
			t.Errorf("%s: the agent was asked: %t", tt.name, asked)
		}
		for _, secret := range []string{"the-alias", "acps:", "expired", "jti", other} {
			if tt.want != 0 && strings.Contains(answer, secret) {
				t.Errorf("%s: the caller is told %s", tt.name, answer)
			}
		}
	}
	for _, h := range a.agent.Requests("") {
		if v := h.Header["Authorization"]; v != nil || bytes.Contains(h.Body, []byte("the-person-behind")) {
			t.Errorf("the agent is given %v, %s", v, h.Body)
		}
	}

	// In A2A the same refusals have the codes of A2A, where −32008 to −32010 mean something else or nothing.
	message := `{"jsonrpc":"2.0","id":1,"method":"%s","params":{"message":{%s"messageId":"m%d","role":"%s","parts":[{%s` +
		`"text":"hello"}]}}}`
	for i, tt := range []struct {
		token  string
		status int
		v03    int64
		v1     int64
	}{
		{"", 401, -31401, -32051}, {"hello", 401, -31401, -32051},
		{sign("g", map[string]any{"act": "agent:" + other}), 403, -31403, -32052},
	} {
		body := fmt.Sprintf(message, "message/send", `"kind":"message",`, i, "user", `"kind":"text",`)
		if status, code, answer := post(t, leader, "/", body, tt.token); status != tt.status || code != tt.v03 {
			t.Errorf("0.3: %d %s, want %d and %d", status, answer, tt.status, tt.v03)
		}
		body = fmt.Sprintf(message, "SendMessage", "", i, "ROLE_USER", "")
		if _, code, answer := post(t, leader, "/?A2A-Version=1.0", body, tt.token); code != tt.v1 {
			t.Errorf("1.0: %s, want %d", answer, tt.v1)
		}
	}

	_, out, errs := a.Caddy("aip", "issuers", "--address", a.AdminAddress())
	if !strings.Contains(out, a.issuer.URL) || !strings.Contains(out, "  1 ") {
		t.Errorf("the issuers are %s%s", out, errs)
	}
	a.Stop(t)
	logged := a.Out.String()
	a.Start(a.config)
	if _, code, answer := a.call(site.LeaderOf(t, a.URL()), "rpc", "start", "again", used); code != -32010 {
		t.Errorf("a token that was used before the restart: %s", answer)
	}
	if _, code, answer := a.call(site.LeaderOf(t, a.URL()), "rpc", "get", "task-1", sign("h", nil)); code != 0 {
		t.Errorf("a new one after the restart: %s", answer)
	}
	a.Stop(t)
	logged += a.Out.String()
	for _, want := range []string{"access token: missing", "access token: replayed", "jti used", "access token: act",
		"access token: cnf", "access token: audience", "access token: signature", "access token: expired"} {
		if !strings.Contains(logged, want) {
			t.Errorf("the log does not say %q", want)
		}
	}
	files := contents(a.Site)
	files["the log"] = logged
	for name, content := range files {
		for _, token := range append(tokens, forged, "the-person-behind") {
			if strings.Contains(content, token) {
				t.Errorf("%s holds %.20q…", name, token)
			}
		}
	}
}

// TestAACStream: a stream ends when its token expires, and the caller resumes it with another one.
func TestAACStream(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	a := serveAAC(t, func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
		<-release
		site.WriteTask(w, h, "completed", "done")
	})
	leader := site.LeaderOf(t, a.URL())
	var short, got string
	var frames []string
	// A token that has ended before the first event tells nothing.
	for life := 3 * time.Second; len(frames) < 2 && life < site.Patience; life *= 2 {
		short = a.issuer.Sign(t, a.claims(fmt.Sprint("short-", life), map[string]any{"exp": time.Now().Add(life).Unix()}))
		_, _, got = a.call(leader, "stream", "start", "task", short)
		frames = strings.Split(strings.TrimSpace(got), "\n\n")
	}
	if last := strings.TrimLeft(frames[len(frames)-1], ":\n"); len(frames) < 2 || !strings.HasPrefix(last, "data: ") ||
		!strings.Contains(last, "-32010") {
		t.Errorf("the stream is %s, want an event, and an error -32010 at its end", got)
	}
	if _, code, answer := a.call(leader, "stream", "re-stream", "task", short); code != -32010 {
		t.Errorf("it is resumed with the old token: %s", answer)
	}
	close(release)
	site.Eventually(t, "the task goes on", func() bool {
		id := fmt.Sprint("poll", time.Now().UnixNano())
		_, _, got = a.call(leader, "rpc", "get", "task", a.issuer.Sign(t, a.claims(id, nil)))
		return strings.Contains(got, "awaiting-completion")
	})
}

// TestAACSkill: a call that names a skill which the agent does not have is refused, as one with a token for another.
func TestAACSkill(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/agent.json", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"name":"exporter","url":"http://127.0.0.1/","version":"1","capabilities":{},"skills":[`+
			`{"id":"data.export","name":"Export"},{"id":"data.import","name":"Import"}]}`)
	})
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		var h site.Heard
		_ = json.NewDecoder(r.Body).Decode(&h)
		site.WriteTask(w, h, "completed", "done")
	})
	agent := httptest.NewServer(mux)
	t.Cleanup(agent.Close)
	issuer, aic := tokentest.New(t), string(site.Certificates(t).Leader.AIC)
	a := &aacSite{issuer: issuer, aic: aic}
	a.Site = site.Serve(t, site.Config{Options: "debug", Handle: `aip_gateway a2a/legacy ` + agent.URL + ` {
		aic ` + protected + `
		callers a2a
		aac {
			issuer ` + issuer.URL + ` ` + issuer.JWKS + `
			allow_networks 127.0.0.0/8 ::1/128
		}
	}`})
	leader := site.LeaderOf(t, a.URL())
	for i, tt := range []struct {
		skill, tokenFor string
		want            int64
	}{
		{"data.export", "", 0}, {"data.export", "data.export", 0}, {"data.import", "data.export", -31403},
		{"data.delete", "", -31403}, {"data.delete", "data.delete", -31403}, {"", "", 0}, {"", "data.export", -31403},
	} {
		token, metadata := "", ""
		if tt.tokenFor != "" {
			token = issuer.Sign(t, a.claims(fmt.Sprint(i), map[string]any{"acps_skill_id": tt.tokenFor}))
		}
		if tt.skill != "" {
			metadata = `,"metadata":{"skillId":"` + tt.skill + `"}`
		}
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message",`+
			`"messageId":"m%d","role":"user","parts":[{"kind":"text","text":"hello"}]%s}}}`, i, metadata)
		if _, code, answer := post(t, leader, "/", body, token); code != tt.want {
			t.Errorf("skill %q, token for %q: %s, want %d", tt.skill, tt.tokenFor, answer, tt.want)
		}
	}
	a.WaitFor(t, `the agent has no skill`)
}

// TestAACOverGRPC: the token is in the metadata of a call.
func TestAACOverGRPC(t *testing.T) {
	t.Parallel()
	a := serveAAC(t, nil)
	client := site.GRPCCaller(t, a.Site, devpkitest.KeyPair(t, site.Certificates(t).Leader))
	good := a.issuer.Sign(t, a.claims("grpc", nil))
	for _, tt := range []struct {
		token string
		want  codes.Code
	}{
		{"", codes.Unauthenticated}, {"hello", codes.Unauthenticated}, {good, codes.OK}, {good, codes.Unauthenticated},
		{a.issuer.Sign(t, a.claims("act", map[string]any{"act": "agent:" + protected})), codes.PermissionDenied},
	} {
		ctx := t.Context()
		if tt.token != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+tt.token)
		}
		if _, err := client.SendMessage(ctx, site.GRPCMessage("hello")); status.Code(err) != tt.want {
			t.Errorf("with %.20q: %v, want %s", tt.token, err, tt.want)
		}
	}
}
