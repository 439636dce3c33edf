// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf/conftest"
	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/front/httpfront"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/trust/token"
)

// read reads an identity as in a Caddyfile, and checks it.
func read(text string) (i Identity, err error) {
	p := conftest.Parser(text)
	if Option(p, &i)(); p.Failed() != nil {
		return i, p.Failed()
	}
	i.FillDefaults()
	return i, i.Check()
}

// TestMistakes: what is said about each mistake, before a file is read.
func TestMistakes(t *testing.T) {
	with := func(options string) string { return "identity {\n" + options + "\n}" }
	conftest.Refuses(t, map[string]string{
		"identity off required": "identity needs required, optional or off, and a block of proofs if they are not a " +
			"certificate, at Testfile:1",
		"identity maybe": `identity: the identity mode is "maybe", and must be required, optional or off`,
		"identity off {\nkeys keys.txt\n}": "identity: off believes every senderId, and looks at no proof; take the " +
			"proofs out of its block, or set required or optional",
		"identity off {\nmtls\n}": "identity: off believes every senderId, and looks at no proof; take the proofs out " +
			"of its block, or set required or optional",
		with("mtls yes"):          "mtls takes no values, at Testfile:2",
		with("oidc"):              "oidc needs the URL of the issuer, at Testfile:2",
		with("oidc a b"):          "oidc needs the URL of the issuer, at Testfile:2",
		with("keys"):              "keys needs the file with the keys, at Testfile:2",
		with("accept a2a/2 mtls"): `identity: accept: there is no dialect "a2a/2"`,
		with("accept a2a tls"): `identity: accept a2a: "tls" is no proof; use mtls, client_cert_header, jwt or ` +
			`keys`,
		with("accept a2a"): "accept needs the name of a dialect and the proofs that it accepts: accept a2a jwt keys, at " +
			"Testfile:2",
		with("oidc https://a.example {\nissuer https://b.example\n}"): `there is no "issuer" in oidc, at Testfile:3`,
		with("oidc https://a.example {\naudience a\nleeway -1s\n}"): "identity: jwt: leeway is -1s, but must not be " +
			"negative",
		with("keys keys.txt {\nheader authorization\n}"): "identity: keys: header needs the name of a header of its own, " +
			"such as X-Api-Key; without it, keys come in Authorization",
		with("keys keys.txt {\nheader \"a b\"\n}"): "identity: keys: header needs the name of a header of its own, such " +
			"as X-Api-Key; without it, keys come in Authorization",
		with("keys keys.txt {\nheader client-cert\n}\nclient_cert_header Client-Cert pem from unix {\ntrust_pool a\n}"): "" +
			"identity: keys: header needs the name of a header of its own, such as X-Api-Key; without it, keys come in " +
			"Authorization",
		with("client_cert_header Client-Cert pem"): "client_cert_header needs the name of the header, its form, from and " +
			"the addresses of the proxy: client_cert_header Client-Cert rfc9440 from 10.0.0.0/8, at Testfile:2",
		with("client_cert_header Client-Cert pem to unix"): "client_cert_header needs the name of the header, its form, " +
			"from and the addresses of the proxy: client_cert_header Client-Cert rfc9440 from 10.0.0.0/8, at Testfile:2",
		with("client_cert_header Authorization pem from unix"): "identity: client_cert_header needs the name of a header " +
			"of its own, such as Client-Cert",
		with("client_cert_header Client-Cert der from unix"): `identity: client_cert_header: "der" is no form; use ` +
			`rfc9440, xfcc or pem`,
		with("client_cert_header Client-Cert pem from unix"): "identity: client_cert_header needs trust_pool and a file " +
			"with the roots of the certificates",
	}, func(text string) error {
		_, err := read(text)
		return err
	})
	i := Identity{ClientCertHeader: &ClientCertHeader{Header: "Client-Cert", Form: "pem", TrustPool: []string{"a"}}}
	i.FillDefaults()
	const want = "identity: client_cert_header needs from and the addresses of the proxy: the header of others is not " +
		"believed"
	if err := i.Check(); err == nil || err.Error() != want {
		t.Errorf("of a proxy from anywhere is said %v, want %s", err, want)
	}
}

// TestJSON: the mode alone may stand for the settings, and what is not known is refused.
func TestJSON(t *testing.T) {
	for text, want := range map[string]string{
		`"off"`: `"off"`, ` {"mode":"optional"}`: `"optional"`,
		`{"mode":"required","mtls":true}`: `{"mode":"required","mtls":true}`,
		`{"accept":{"aip":["jwt"]}}`:      `{"accept":{"aip":["jwt"]}}`,
		`{"keys":{"file":"f"}}`:           `{"keys":{"file":"f"}}`,
		`{"mtsl":true}`:                   `json: unknown field "mtsl"`,
		`{"jwt":[{"issuers":"a"}]}`:       `json: unknown field "issuers"`,
		`7`:                               "json: cannot unmarshal number into Go value of type proof.plain",
	} {
		var i Identity
		got := ""
		if err := i.UnmarshalJSON([]byte(text)); err != nil {
			got = err.Error()
		} else if out, err := json.Marshal(i); err != nil {
			t.Error(err)
		} else {
			got = string(out)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for i, want := range map[*Identity]bool{{}: true, {Mode: "off"}: false, {MTLS: true}: false,
		{Accept: map[string][]string{"aip": nil}}: false} {
		if i.IsZero() != want {
			t.Errorf("%+v is left out: %t", i, !want)
		}
	}
}

// TestAccepts: the nearest name of a dialect decides which proofs its callers may have.
func TestAccepts(t *testing.T) {
	all := []string{"mtls", "client_cert_header", "jwt", "keys"}
	i := &Identity{Accept: map[string][]string{"a2a": {"keys"}, "a2a/1.0": {"jwt"}, "aip/2": {"mtls", "jwt"}}}
	for dialect, want := range map[string][]string{
		"a2a/0.3": {"keys"}, "a2a/legacy": {"keys"}, "a2a/1.0": {"jwt"}, "a2a/1.0-rest": {"jwt"}, "a2a/1.0-grpc": {"jwt"},
		"aip": {"mtls", "client_cert_header"}, "aip/2": {"mtls", "jwt"}, "agentapi": all, "aun": all,
	} {
		if diff := cmp.Diff(want, i.Accepts(dialect)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", dialect, diff)
		}
	}
}

// TestOffered: cards and refusals name the proofs that are configured and that the dialect takes, and no other.
func TestOffered(t *testing.T) {
	callers, err := gateway.Callers([]string{"aip", "a2a/1.0"}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	const proxy = "client_cert_header Client-Cert pem from unix {\ntrust_pool a.pem\n}\n"
	const openID = "https://a.example/.well-known/openid-configuration"
	for text, want := range map[string]struct {
		aip, a2a               a2a.Schemes
		askedByAIP, askedByA2A httpfront.Challenges
	}{
		"mtls": {a2a.Schemes{MutualTLS: true}, a2a.Schemes{MutualTLS: true}, httpfront.Challenges{Certificate: true},
			httpfront.Challenges{Certificate: true}},
		proxy: {a2a.Schemes{MutualTLS: true}, a2a.Schemes{MutualTLS: true}, httpfront.Challenges{Certificate: true},
			httpfront.Challenges{Certificate: true}},
		"mtls\nkeys f": {a2a.Schemes{MutualTLS: true}, a2a.Schemes{MutualTLS: true, Bearer: true},
			httpfront.Challenges{Certificate: true}, httpfront.Challenges{Certificate: true, Bearer: true}},
		"keys f {\nheader X-Key\n}": {a2a.Schemes{}, a2a.Schemes{KeyHeader: "X-Key"}, httpfront.Challenges{},
			httpfront.Challenges{KeyHeader: "X-Key"}},
		"oidc https://a.example/ {\naudience a\n}\naccept aip jwt": {a2a.Schemes{OpenID: []string{openID}},
			a2a.Schemes{OpenID: []string{openID}}, httpfront.Challenges{Bearer: true}, httpfront.Challenges{Bearer: true}},
		"mtls\nkeys f\naccept a2a keys": {a2a.Schemes{MutualTLS: true}, a2a.Schemes{Bearer: true},
			httpfront.Challenges{Certificate: true}, httpfront.Challenges{Bearer: true}},
		"jwt {\nissuer a\njwks https://a.example/keys\naudience a\n}": {a2a.Schemes{}, a2a.Schemes{Bearer: true},
			httpfront.Challenges{}, httpfront.Challenges{Bearer: true}},
	} {
		i, err := read("identity {\n" + text + "\n}")
		if err != nil {
			t.Fatal(err)
		}
		schemes := map[string]a2a.Schemes{}
		for _, c := range callers {
			schemes[c.Name()] = want.a2a
			if c.Name() == "aip" || c.Name() == "aip/2" {
				schemes[c.Name()] = want.aip
			}
		}
		if diff := cmp.Diff(schemes, i.Schemes(callers)); diff != "" {
			t.Errorf("%s: the cards (-want +got):\n%s", text, diff)
		}
		asked := map[string]httpfront.Challenges{}
		for _, c := range callers {
			asked[c.Name()] = want.askedByA2A
			if c.Name() == "aip" || c.Name() == "aip/2" {
				asked[c.Name()] = want.askedByAIP
			}
		}
		if diff := cmp.Diff(asked, i.Challenges(callers)); diff != "" {
			t.Errorf("%s: the refusals (-want +got):\n%s", text, diff)
		}
		if i.Mode = "optional"; len(i.Schemes(callers)) != 0 {
			t.Errorf("%s: a card demands a proof that may be left out", text)
		}
	}
}

// TestProofs: settings judge alike whatever the mode and the accepted proofs, and not with another file of keys.
func TestProofs(t *testing.T) {
	one := &Identity{Mode: "required", MTLS: true, Keys: &Keys{File: "f"}}
	for what, tc := range map[string]struct {
		other Identity
		aac   bool
		same  bool
	}{
		"the mode": {Identity{Mode: "optional", MTLS: true, Keys: &Keys{File: "f"}}, true, true},
		"what is taken": {Identity{Mode: "required", MTLS: true, Keys: &Keys{File: "f"},
			Accept: map[string][]string{"a2a": {"keys"}}}, true, true},
		"the file":   {Identity{Mode: "required", MTLS: true, Keys: &Keys{File: "g"}}, true, false},
		"the header": {Identity{Mode: "required", MTLS: true, Keys: &Keys{File: "f", Header: "X-Key"}}, true, false},
		"mtls":       {Identity{Mode: "required", Keys: &Keys{File: "f"}}, true, false},
		"aac":        {*one, false, false},
	} {
		if same := tc.other.Proofs(tc.aac) == one.Proofs(true); same != tc.same {
			t.Errorf("another value of %s judges alike: %t, want %t", what, same, tc.same)
		}
	}
}

// TestAuthenticatorErrors: what is said where a file of the proofs, or what is in it, is of no use.
func TestAuthenticatorErrors(t *testing.T) {
	made, dir := devpkitest.Make(t, devpki.Options{}), t.TempDir()
	none, open := filepath.Join(dir, "none"), filepath.Join(dir, "open")
	if err := os.WriteFile(open, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	proxy := func(from, options string) string {
		return "client_cert_header Client-Cert pem from " + from + " {\n" + options + "\n}"
	}
	jwt := func(options string) string { return "jwt {\njwks https://a.example/keys\n" + options + "\n}" }
	conftest.Refuses(t, map[string]string{
		proxy("10.0.0.0/8 proxy.example", "trust_pool a"): `identity: client_cert_header: from: "proxy.example" is no ` +
			`network or address, such as 10.0.0.0/8, and not unix`,
		proxy("10.0.0.0/33", "trust_pool a"): `identity: client_cert_header: from: "10.0.0.0/33" is no network or ` +
			`address, such as 10.0.0.0/8, and not unix`,
		proxy("unix", "trust_pool "+none): "identity: client_cert_header: trust_pool: open " + none + ": no such " +
			"file or directory",
		proxy("unix", "trust_pool "+made.CA.Cert+"\nintermediates "+open): "identity: client_cert_header: " +
			"intermediates: " + open + ": there is no PEM block \"CERTIFICATE\"",
		"keys " + none:            "identity: keys: open " + none + ": no such file or directory",
		"keys {env.NO_SUCH_FILE}": "identity: keys: has a placeholder without a value: {env.NO_SUCH_FILE}",
		"keys " + open:            "identity: keys: " + open + " may be read by others: run chmod 600 " + open,
		jwt("audience a"):         "identity: jwt: the issuer of tokens is missing",
		jwt("issuer \"a|b\"\naudience a"): `identity: jwt: the issuer "a|b" holds a bar, and names of Leaders end ` +
			`an issuer with it`,
		jwt("issuer a"): "identity: jwt: the audience of tokens of a is missing: without it, tokens for others " +
			"would be accepted",
		jwt("issuer a\naudience a\nalgorithms none"): `identity: jwt: the algorithm "none" is not supported; use ` +
			`RS256, PS256, ES256, EdDSA`,
		jwt("issuer a\naudience a\nallow_networks 10.0.0.0"): `identity: jwt: allow_networks: "10.0.0.0" is no network, ` +
			`such as 10.0.0.0/8`,
		jwt("issuer a\naudience a\nca " + open): "identity: jwt: tls ca: " + open + ": there is no PEM block \"CERTIFICATE\"",
	}, func(text string) error {
		i, err := read("identity {\n" + text + "\n}")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			return err
		}
		_, err = i.Authenticator(nil, new(token.Keys))
		return err
	})
}

// TestProxyAddresses: an address is a network of one, and a network has no bits beyond its size.
func TestProxyAddresses(t *testing.T) {
	got, unix, err := proxyAddresses([]string{"10.1.2.3/8", "192.0.2.1", "unix", "2001:db8::1"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"10.0.0.0/8", "192.0.2.1/32", "2001:db8::1/128"}
	var texts []string
	for _, p := range got {
		texts = append(texts, p.String())
	}
	if diff := cmp.Diff(want, texts); diff != "" || !unix {
		t.Errorf("unix %t (-want +got):\n%s", unix, diff)
	}
	if got, unix, err := proxyAddresses([]string{"192.0.2.1"}); err != nil || unix ||
		!got[0].Contains(netip.MustParseAddr("192.0.2.1")) || got[0].Contains(netip.MustParseAddr("192.0.2.2")) {
		t.Errorf("of one address: %v, unix %t, %v", got, unix, err)
	}
}

// TestLeeway: none is not the default.
func TestLeeway(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "leeway 0s": -1, "leeway 5s": 5 * time.Second} {
		i, err := read("identity {\njwt {\nissuer a\naudience a\n" + text + "\n}\n}")
		if err != nil {
			t.Fatal(err)
		}
		c, err := i.JWT[0].Config(caddy.NewReplacer(), nil)
		if err != nil || c.Leeway != want {
			t.Errorf("%q: %s, %v, want %s", text, c.Leeway, err, want)
		}
	}
}
