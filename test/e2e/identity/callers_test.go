// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/aip-gateway/aip-gateway/trust/token/tokentest"
)

// TestProofs calls with every proof, of which some say that they are one agent, and with forged ones.
//
// Promise: another party acts as a Leader
func TestProofs(t *testing.T) {
	t.Parallel()
	agent, issuer := site.NewFakeAgent(t, nil), tokentest.New(t)
	p := site.Certificates(t)
	aic := string(p.Leader.AIC)
	s := site.New(t)
	keys := s.InDir("keys")
	_, out, stderr := s.Caddy("aip", "key", "reports", "--file", keys)
	key, _, _ := strings.Cut(strings.TrimPrefix(out, "key   "), "\n")
	if !strings.HasPrefix(key, "aipk_") {
		t.Fatal(out, stderr)
	}
	proxied := func(mount, from string) string {
		return `
	handle_path ` + mount + `* {
		aip_gateway a2a/legacy ` + agent.URL + ` {
			callers aip a2a
			identity {
				mtls
				client_cert_header Client-Cert rfc9440 from ` + from + ` {
					trust_pool ` + p.CA.Cert + `
				}
				jwt {
					issuer ` + issuer.URL + `
					audience us
					scopes call
					allow_networks 127.0.0.0/8 ::1/128
				}
				keys ` + keys + `
			}
		}
	}`
	}
	s.Start(site.Config{Mode: "verify_if_given",
		Store:  "store pebble " + s.InDir("store") + "\nidentities {\n" + aic + " key:reports\n}",
		Handle: proxied("/near", "127.0.0.0/8 ::1/128") + proxied("/far", "192.0.2.0/24")})
	client := site.CallerWith(t, s.URL(), "").HTTP
	header := ":" + base64.StdEncoding.EncodeToString(devpkitest.KeyPair(t, p.Leader).Leaf.Raw) + ":"
	expires := time.Now().Add(time.Hour).Unix()
	sign := func(aud, scope string) string {
		return issuer.Sign(t, map[string]any{"sub": "alice", "aud": aud, "scope": scope, "exp": expires})
	}
	token := sign("us", "call")
	const send = `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message","messageId":"m",` +
		`"role":"user","parts":[{"kind":"text","text":"hello"}]}}}`
	aip := string(site.RPCBody(aic, "start", "of-aip", "hello"))
	for _, tc := range []struct {
		name, mount, body string
		bearer            []string
		cert              []string
		status            int
		says              string // in the answer
		challenge         string
	}{
		{"a key", "/near", send, []string{key}, nil, 200, `"result"`, ""},
		{"a token", "/near", send, []string{token}, nil, 200, `"result"`, ""},
		{"a certificate of a proxy", "/near", send, nil, []string{header}, 200, `"result"`, ""},
		{"it in AIP", "/near", aip, nil, []string{header}, 200, `"result"`, ""},
		{"it, and a token", "/near", aip, []string{token}, []string{header}, 200, `"result"`, ""},
		{"a key in AIP", "/near", aip, []string{key}, nil, 200, `-32008`, ""},
		{"nothing", "/near", send, nil, nil, 401, `"error"`, "Bearer"},
		{"nothing in AIP", "/near", aip, nil, nil, 200, `-32008`, ""},
		{"another key", "/near", send, []string{key + "x"}, nil, 401, `"error"`, `Bearer error="invalid_token"`},
		{"a token for others", "/near", send, []string{sign("them", "call")}, nil, 401, `"error"`,
			`Bearer error="invalid_token"`},
		{"a token without the scope", "/near", send, []string{sign("us", "read")}, nil, 403, `"error"`,
			`Bearer error="insufficient_scope", scope="call"`},
		{"two keys", "/near", send, []string{key, key}, nil, 400, `"error"`, `Bearer error="invalid_request"`},
		{"a wrong token beside a certificate", "/near", aip, []string{token + "x"}, []string{header}, 200, `-32008`, ""},
		{"two certificates", "/near", aip, nil, []string{header, header}, 200, `-32008`, ""},
		{"a list of certificates", "/near", aip, nil, []string{header + ", " + header}, 200, `-32008`, ""},
		{"no certificate in the header", "/near", aip, nil, []string{":AAAA:"}, 200, `-32008`, ""},
		{"the header of a stranger", "/far", aip, nil, []string{header}, 200, `-32008`, ""},
		{"the header of a stranger in A2A", "/far", send, nil, []string{header}, 401, `"error"`, "Bearer"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", s.URL()+tc.mount, strings.NewReader(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		for _, b := range tc.bearer {
			req.Header.Add("Authorization", "Bearer "+b)
		}
		req.Header["Client-Cert"] = tc.cert
		req.Header.Set("X-Forwarded-For", "192.0.2.1")
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != tc.status || !strings.Contains(string(body), tc.says) ||
			res.Header.Get("WWW-Authenticate") != tc.challenge {
			t.Errorf("%s: got %d, %q and %s, %v", tc.name, res.StatusCode, res.Header["Www-Authenticate"], body, err)
		}
	}
	// The key is one agent with the AIC, whose tasks it finds; the bearer of the token is another Leader.
	tasks := ""
	for _, task := range s.Listed("tasks", url.Values{}) {
		tasks += task.Get("leader").String() + "\n"
	}
	for _, leader := range []string{aic, "jwt:" + issuer.URL + "|alice"} {
		if !strings.Contains(tasks, leader) {
			t.Errorf("there is no task of %s: %s", leader, tasks)
		}
	}
	if strings.Contains(tasks, "key:reports") {
		t.Errorf("the key is a Leader of its own: %s", tasks)
	}
}

// TestSchemesOfADialect: the card of a version names the proofs that its callers may have, as the challenge does.
func TestSchemesOfADialect(t *testing.T) {
	t.Parallel()
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/.well-known/agent.json" {
			_, _ = io.WriteString(w, `{"name":"a","version":"1","skills":[]}`) // the caller may be gone
		}
	}))
	t.Cleanup(agent.Close)
	s := site.New(t)
	keys := s.InDir("keys")
	if code, out, stderr := s.Caddy("aip", "key", "reports", "--file", keys); code != 0 {
		t.Fatal(out, stderr)
	}
	s.Start(site.Config{Mode: "verify_if_given", Handle: `aip_gateway a2a/legacy ` + agent.URL + ` {
		callers aip a2a
		identity {
			mtls
			keys ` + keys + `
			accept a2a/1.0 mtls
			accept a2a/0.3 keys
			accept a2a/legacy mtls keys
		}
	}`})
	client := site.CallerWith(t, s.URL(), "").HTTP
	ask := func(method, path, version, body string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("A2A-Version", version)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
	const bearer, mtls = `{"type":"http","scheme":"bearer"}`, `{"mtlsSecurityScheme":{}}`
	for _, tc := range []struct{ file, version, want string }{
		{"agent-card.json", "1.0", `{"mtls":` + mtls + `}`},
		{"agent-card.json", "0.3", `{"bearer":` + bearer + `}`},
		{"agent-card.json", "", `{"bearer":{"type":"http","scheme":"bearer","httpAuthSecurityScheme":{"scheme":"Bearer"}},` +
			`"mtls":{"type":"mutualTLS","mtlsSecurityScheme":{}}}`},
		{"agent.json", "", `{"bearer":` + bearer + `}`},
	} {
		var card struct{ SecuritySchemes, Security json.RawMessage }
		if err := json.NewDecoder(ask("GET", "/.well-known/"+tc.file, tc.version, "").Body).Decode(&card); err != nil {
			t.Fatal(err)
		}
		if got := string(card.SecuritySchemes); got != tc.want {
			t.Errorf("%s for %q has the schemes %s, want %s", tc.file, tc.version, got, tc.want)
		}
		if tc.version != "1.0" && string(card.Security) != `[{"bearer":[]}]` {
			t.Errorf("%s for %q has the security %s", tc.file, tc.version, card.Security)
		}
	}
	for _, tc := range []struct {
		version, body string
		want          []string
	}{
		{"1.0", `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t"}}`, []string{"AIP-Certificate"}},
		{"", `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message","messageId":"m",` +
			`"role":"user","parts":[{"kind":"text","text":"hello"}]}}}`, []string{"Bearer"}},
		{"", `{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{"id":"t","message":{"role":"user",` +
			`"parts":[{"type":"text","text":"hello"}]}}}`, []string{"Bearer", "AIP-Certificate"}},
	} {
		res := ask("POST", "/", tc.version, tc.body)
		if got := res.Header.Values("WWW-Authenticate"); res.StatusCode != 401 || !slices.Equal(got, tc.want) {
			t.Errorf("%s is answered with %d and the challenges %q, want %q", tc.body, res.StatusCode, got, tc.want)
		}
	}
}
