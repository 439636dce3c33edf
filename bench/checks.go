// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/aip-gateway/aip-gateway/internal/freeport"
)

// checkedAIC is the Partner of checks.
const checkedAIC = "10001000011K912345E789ABCDEF2353"

// checks measures what it costs that calls are checked beside the certificates of their callers: by access tokens that
// are sent with several calls, or with one alone. Each is compared with a site of the same Partner that checks nothing,
// in the same process, in turns.
func checks(ctx context.Context, o settings) error {
	issuer, err := newIssuer()
	if err != nil {
		return err
	}
	defer issuer.server.Close()
	aac := func(replay string) string {
		return fmt.Sprintf("\t\taac {\n\t\t\tissuer bench %s/\n\t\t\tallow_networks 127.0.0.0/8\n\t\t\treplay %s\n\t\t}\n",
			issuer.url, replay)
	}
	var free []int
	more := ""
	for _, settings := range []string{"", aac("off"), aac("refuse")} {
		port, err := freeport.Take()
		if err != nil {
			return err
		}
		free = append(free, port)
		more += fmt.Sprintf(`https://localhost:%d {
	import mutual
	aip_gateway a2a/legacy http://127.0.0.1:AGENT {
		identity required
		aic %s
		limits {
			tasks_per_leader 100000000
		}
%s	}
}
`, port, checkedAIC, settings)
	}
	s, err := newSite(ctx, o.caddy, siteConfig{more: more})
	if err != nil {
		return err
	}
	defer s.close()
	first := len(s.ports)
	s.ports = append(s.ports, free...)
	aic := string(s.pki.Leader.AIC)
	shared, err := issuer.sign(aic, "shared")
	if err != nil {
		return err
	}
	perCall := func(n int64) string {
		token, err := issuer.sign(aic, fmt.Sprint(salt, "-", n))
		if err != nil {
			panic(err) // its key has signed one
		}
		return token
	}
	to := func(name string, site int, token func(int64) string) way {
		w := mtls1
		w.gateway = first + site
		t := aipStart(s, w)
		t.name = name
		if token != nil {
			t.header = func(dst []byte, n int64) []byte {
				return fmt.Appendf(dst, "Authorization: Bearer %s\r\n", token(n))
			}
		}
		return way{target: t, process: s.gateway}
	}
	again := func(int64) string { return shared }
	ways := []way{
		to("nothing", 0, nil),
		to("nothing, and a token is sent", 0, again),
		to("no token is sent", 1, nil),
		to("one token for all calls", 1, again),
		to("a token for each call", 1, perCall),
		to("a token for each call, kept as used", 2, perCall),
	}
	rounds, err := inTurns(ctx, o, o.conns, ways...)
	if err != nil {
		return err
	}
	t := o.table("access tokens, to a site that reads none: unary start over mutual TLS, "+plural(o.conns, "connection"),
		"throughput", "p99", "CPU each", "more µs each")
	for i := range ways {
		a, b := summary(rounds[i]), summary(rounds[0])
		t.row(ways[i].target.name, a[0]/b[0], a[2]/b[2], a[3]/b[3], a[3]-b[3])
	}
	return nil
}

// issuer signs access tokens, and serves the key.
type issuer struct {
	signer jose.Signer
	server *http.Server
	url    string
}

func newIssuer() (*issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	i := new(issuer)
	i.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "1"}}, nil)
	if err != nil {
		return nil, err
	}
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Use: "sig"}}})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	i.url = "http://" + l.Addr().String()
	i.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(keys) // the gateway asks again
	})}
	go i.server.Serve(l)
	return i, nil
}

// sign returns a token by which a Leader acts for a user.
func (i *issuer) sign(leader, id string) (string, error) {
	now := time.Now().Unix()
	claims, err := json.Marshal(map[string]any{"iss": "bench", "sub": "user", "aud": "acps:agent:" + checkedAIC,
		"exp": now + 3600, "iat": now, "jti": id, "scope": "acps.skill.invoke:any",
		"act": map[string]any{"sub": "agent:" + leader}})
	if err != nil {
		return "", err
	}
	signed, err := i.signer.Sign(claims)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
