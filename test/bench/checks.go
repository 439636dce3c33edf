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
	sites, err := sitesWith("aic "+checkedAIC+"\n", issuer.block("replay off"), issuer.block("replay refuse"))
	if err != nil {
		return err
	}
	s, err := newSite(ctx, o.caddy, siteConfig{more: sites.config})
	if err != nil {
		return err
	}
	defer s.close()
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
		w := sites.way(s, site, token)
		w.target.name = name
		return w
	}
	again := always(shared)
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

// always returns a token for each call.
func always(token string) func(int64) string { return func(int64) string { return token } }

// block returns the options of a site that reads the tokens, with one more in aac.
func (i *issuer) block(option string) string {
	return fmt.Sprintf("aic %s\naac {\nissuer bench %s/\nallow_networks 127.0.0.0/8\n%s\n}\n", checkedAIC, i.url, option)
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
