// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/aip-gateway/aip-gateway/trust/token/tokentest"
)

// TestLoopKeepsCallersApart has a proxy send the calls of several callers on one connection of its own, which a loop
// serves: nothing of a call is left when the next one comes, which may name itself by a token, by another one, by
// nothing, or by a forged one.
func TestLoopKeepsCallersApart(t *testing.T) {
	t.Parallel()
	agent, issuer := site.NewFakeAgent(t, nil), tokentest.New(t)
	s := site.Serve(t, site.Config{Mode: "verify_if_given", Store: "store memory",
		Handle: `aip_identify {
		callers a2a
		identity {
			jwt {
				issuer ` + issuer.URL + `
				audience us
				allow_networks 127.0.0.0/8 ::1/128
			}
		}
	}
	vars /other* mine yes
	header X-Seen "{http.request.host} {http.vars.mine} {http.request.header.X-Mine} {aip.leader}"
	handle_path /other* {
		respond "not the gateway"
	}
	aip_gateway a2a/legacy ` + agent.URL + ` {
		callers a2a
		identity {
			jwt {
				issuer ` + issuer.URL + `
				audience us
				allow_networks 127.0.0.0/8 ::1/128
			}
		}
	}`})
	sign := func(name, audience string) string {
		return issuer.Sign(t, map[string]any{"sub": name, "aud": audience, "exp": time.Now().Add(time.Minute).Unix()})
	}
	alice, bob, forged := sign("alice", "us"), sign("bob", "us"), sign("alice", "them")
	c, err := tls.Dial("tcp", fmt.Sprintf("localhost:%d", s.Port), &tls.Config{RootCAs: site.Trusted(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	const body = `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message","messageId":"m",` +
		`"role":"user","parts":[{"kind":"text","text":"hello"}]}}}`
	send := func(path, host, fields, want string, status int) {
		t.Helper()
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
			path, host, fields, len(body), body)
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != status || res.Header.Get("X-Seen") != want {
			t.Errorf("%s with %.40q: %s, %q, %.200s, %v", path, fields, res.Status, res.Header.Get("X-Seen"), answer, err)
		}
	}
	by := func(token string) string { return "Authorization: Bearer " + token + "\r\n" }
	of := func(name string) string { return "jwt:" + issuer.URL + "|" + name }
	for range 3 {
		send("/", "localhost", by(alice), "localhost   "+of("alice"), 200)
		send("/", "localhost", by(bob), "localhost   "+of("bob"), 200)
		send("/", "localhost", "", "localhost", 401)
		send("/", "localhost", by(forged), "localhost", 401)
		send("/other/", "localhost", "X-Mine: x\r\n"+by(alice), "localhost yes x "+of("alice"), 200)
		send("/", "localhost", by(bob), "localhost   "+of("bob"), 200)
	}
	status, stacks := s.Asked(http.MethodGet, "/debug/pprof/goroutine?debug=2", "")
	if !strings.Contains(string(stacks), "takeover.(*loop).run") {
		t.Errorf("no loop serves the connection: %d", status)
	}
}
