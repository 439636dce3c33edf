// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
)

// TestOpenConsoles holds which consoles are refused, and of which an operator is warned.
func TestOpenConsoles(t *testing.T) {
	pki := devpkitest.Make(t, devpki.Options{})
	const console = "aip_console {\nallow cancel\n}\n"
	const public = "aip_console {\nallow cancel\npublic\n}\n"
	const partner = "aip_gateway a2a/0.3 http://127.0.0.1:1\n"
	hash := "$2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG"
	basic := func(matcher string) string { return "basic_auth " + matcher + " {\nann " + hash + "\n}\n" }
	const forward = "forward_auth 127.0.0.1:1 {\nuri /check\n}\n"
	tls := func(auth string) string {
		return "tls " + pki.Server.Cert + " " + pki.Server.Key + " {\n" + auth + "\n}\n"
	}
	trust := "trust_pool file " + pki.CA.Cert
	required, given := tls("client_auth {\nmode require_and_verify\n"+trust+"\n}"),
		tls("client_auth {\nmode verify_if_given\n"+trust+"\n}")
	other := devpkitest.Make(t, devpki.Options{})
	pool := func(pool string) string { return tls("client_auth {\nmode require_and_verify\n" + pool + "\n}") }
	both, below, unknown := pool("trust_pool file "+other.CA.Cert+" "+pki.CA.Cert),
		pool("trust_pool file "+pki.Server.Cert), pool("trust_pool system")
	chosen := pool(trust + "\ntrusted_leaf_cert_file " + pki.Leader.Cert)
	deep := makeChain(t)
	const loose = "servers {\nstrict_sni_host insecure_off\n}\n"
	const open, shared, unproven, warned = "it is not proven that its site authenticates all",
		"certificates that open an aip_gateway open", "not proven that no certificate", "may change tasks"
	const some, unknownPool = "some of its connections", "it is not known which certificates open the console"
	const unfinished = "is below another CA"
	for name, c := range map[string]struct {
		sites string // PLAIN and PORT stand for addresses
		want  string // empty: nothing is said
	}{
		"nothing":                      {"http://PLAIN {\n" + console + "}\n", open},
		"it only reads":                {"http://PLAIN {\naip_console\n}\n", open},
		"public":                       {"http://PLAIN {\n" + public + "}\n", ""},
		"of this machine":              {"http://PLAIN {\nbind 127.0.0.1\n" + console + "}\n", warned},
		"of this machine, it reads":    {"http://PLAIN {\nbind ::1 127.0.0.1\naip_console\n}\n", ""},
		"of this machine, public":      {"http://PLAIN {\nbind 127.0.0.1\n" + public + "}\n", ""},
		"at a socket":                  {"http://PLAIN {\nbind unix/SOCKET\naip_console\n}\n", ""},
		"basic_auth":                   {"http://PLAIN {\n" + basic("") + console + "}\n", ""},
		"basic_auth of the console":    {"http://PLAIN {\n" + basic("/aip/*") + console + "}\n", ""},
		"basic_auth of other paths":    {"http://PLAIN {\n" + basic("/other/*") + console + "}\n", open},
		"basic_auth of the page alone": {"http://PLAIN {\n" + basic("/aip/console/*") + console + "}\n", open},
		"basic_auth of another handle": {"http://PLAIN {\nhandle /x/* {\n" + basic("") + "}\nhandle {\n" +
			console + "}\n}\n", open},
		"basic_auth in the handle": {"http://PLAIN {\nhandle /aip/* {\n" + basic("") + console + "}\n}\n", ""},
		"basic_auth behind it":     {"http://PLAIN {\nroute {\n" + console + basic("") + "}\n}\n", open},
		"forward_auth":             {"http://PLAIN {\n" + forward + console + "}\n", ""},
		"a proxy of other paths":   {"http://PLAIN {\nreverse_proxy /x/* 127.0.0.1:1\n" + console + "}\n", open},
		"below a path":             {"http://PLAIN {\nhandle_path /ops/* {\n" + console + "}\n}\n", open},
		"some addresses": {"http://PLAIN {\n@ops remote_ip 10.0.0.0/8\nhandle @ops {\n" + console +
			"}\n}\n", ""},
		"of errors":        {"http://PLAIN {\nerror /aip/* 401\nhandle_errors {\n" + console + "}\n}\n", open},
		"in a named route": {"&(ops) {\n" + console + "}\nhttp://PLAIN {\ninvoke ops\n}\n", open},
		"in the answer of an intercept": {"http://PLAIN {\nintercept {\nhandle_response {\n" + console + "}\n}\n" +
			"respond 404\n}\n", open},
		"in the answer of an intercept, and basic_auth": {"http://PLAIN {\n" + basic("") + "intercept {\n" +
			"handle_response {\n" + console + "}\n}\nrespond 404\n}\n", ""},
		"in a named route of the answer of an intercept": {"&(ops) {\n" + console + "}\nhttp://PLAIN {\nroute /x {\n" +
			basic("") + "invoke ops\n}\nintercept {\nhandle_response {\ninvoke ops\n}\n}\nrespond 404\n}\n", open},
		"in a named route of a named route": {"&(ops) {\n" + console + "}\n&(all) {\ninvoke ops\ninvoke all\n}\n" +
			"http://PLAIN {\ninvoke all\n}\n", open},
		"a named route behind basic_auth": {"&(ops) {\n" + console + "}\nhttp://PLAIN {\n" + basic("") +
			"invoke ops\n}\n", ""},
		"basic_auth in a named route": {"&(ops) {\nroute {\n" + basic("") + console + "}\n}\n" +
			"http://PLAIN {\ninvoke ops\n}\n", ""},
		"some methods":                   {"http://PLAIN {\n@get method GET\nhandle @get {\n" + console + "}\n}\n", open},
		"certificates":                   {"https://localhost:PORT {\n" + required + console + "}\n", ""},
		"TLS alone":                      {"https://localhost:PORT {\n" + tls("") + console + "}\n", open},
		"certificates, if there are any": {"https://localhost:PORT {\n" + given + console + "}\n", open},
		"certificates of another site": {"https://localhost:PORT {\n" + tls("") + console + "}\n" +
			"https://a.localhost:PORT {\n" + required + "respond 404\n}\n", open},
		"certificates of its site alone": {"https://localhost:PORT {\n" + tls("") + "respond 404\n}\n" +
			"https://*.localhost:PORT {\n" + required + console + "}\n", ""},
		"certificates of Leaders": {"https://localhost:PORT {\n" + required + partner + console + "}\n", shared},
		"certificates of Leaders in a named route": {"&(leaders) {\n" + partner + "}\nhttps://localhost:PORT {\n" +
			required + "invoke leaders\n" + console + "}\n", shared},
		"certificates of Leaders, and basic_auth": {"https://localhost:PORT {\n" + required + partner + basic("") +
			console + "}\n", ""},
		"certificates of Leaders, some subjects": {"https://localhost:PORT {\n" + required + partner +
			"@ops expression {http.request.tls.client.subject}.contains('ops')\nhandle @ops {\n" + console +
			"}\n}\n", shared},
		"certificates of Leaders, public": {"https://localhost:PORT {\n" + required + partner + public + "}\n", ""},
		"basic_auth of the console's path, and the console below another": {"http://PLAIN {\n" + basic("/aip/*") +
			"handle_path /ops/* {\n" + console + "}\n}\n", open},
		"basic_auth, and the console below another path": {"http://PLAIN {\n" + basic("") + "handle_path /ops/* {\n" +
			console + "}\n}\n", ""},
		"basic_auth below the path": {"http://PLAIN {\nhandle_path /ops/* {\n" + basic("/aip/*") + console +
			"}\n}\n", ""},
		"basic_auth of the path, and a rewrite of others": {"http://PLAIN {\n" + basic("/aip/*") +
			"handle_path /x/* {\nrespond 404\n}\nhandle {\n" + console + "}\n}\n", ""},
		"basic_auth of the path, before a rewrite": {"http://PLAIN {\nroute {\n" + basic("/aip/*") +
			"uri strip_prefix /ops\n" + console + "}\n}\n", open},
		"basic_auth of some methods": {"http://PLAIN {\n@write method POST\n" + basic("@write") + console + "}\n", open},
		"basic_auth of the path and some methods": {"http://PLAIN {\n@write {\nmethod POST\npath /aip/*\n}\n" +
			basic("@write") + console + "}\n", open},
		"an expression": {"http://PLAIN {\n@c expression `path('/aip/*')`\nhandle @c {\n" + console + "}\n}\n", open},
		"variables":     {"http://PLAIN {\n@c vars {http.request.method} GET\nhandle @c {\n" + console + "}\n}\n", open},
		"all addresses": {"http://PLAIN {\n@all remote_ip 0.0.0.0/0 ::/0\nhandle @all {\n" + console + "}\n}\n", open},
		"a proxy that passes each answer on": {"http://PLAIN {\nroute {\nreverse_proxy 127.0.0.1:1 {\nhandle_response {\n" +
			"vars a b\n}\n}\n" + console + "}\n}\n", open},
		"forward_auth with a page for 401": {"http://PLAIN {\nforward_auth 127.0.0.1:1 {\nuri /check\n@no status 401\n" +
			"handle_response @no {\nredir * /login\n}\n}\n" + console + "}\n", ""},
		"in the answer of a proxy": {"http://PLAIN {\nreverse_proxy 127.0.0.1:1 {\nhandle_response {\n" + console +
			"}\n}\n}\n", open},
		"certificates of two authorities, one the Leaders'": {"https://localhost:PORT {\n" + both + console + "}\n" +
			"https://a.localhost:PORT {\n" + required + partner + "}\n", shared},
		"certificates of an authority that the Leaders' is below": {"https://localhost:PORT {\n" + required + console +
			"}\nhttps://a.localhost:PORT {\n" + below + partner + "}\n", shared},
		"certificates of Leaders of another server": {"https://localhost:PORT {\n" + required + console + "}\n" +
			"https://a.localhost:OTHER {\n" + required + partner + "}\n", shared},
		"certificates of a pool that is not known": {"https://localhost:PORT {\n" + unknown + console + "}\n" +
			"https://a.localhost:PORT {\n" + required + partner + "}\n", unknownPool},
		"certificates that a proxy hands on": {"https://localhost:PORT {\n" + required + console + "}\n" +
			"http://127.0.0.1:OTHER {\naip_gateway a2a/0.3 http://127.0.0.1:1 {\nidentity {\nclient_cert_header Client-Cert " +
			"rfc9440 from 10.0.0.1 {\ntrust_pool " + pki.CA.Cert + "\n}\n}\n}\n}\n", shared},
		"certificates that are named": {"https://localhost:PORT {\n" + chosen + console + "}\n" +
			"https://a.localhost:PORT {\n" + required + partner + "}\n", ""},
		"certificates of Leaders of another site": {"https://localhost:PORT {\n" + required + console + "}\n" +
			"https://a.localhost:PORT {\n" + required + partner + "}\n", shared},
		"certificates, beside a path of another site": {"https://:PORT {\n" + required + console + "}\n" +
			"https://a.localhost:PORT/x/* {\n" + tls("") + "respond hi\n}\n", some},
		"certificates of any name, beside a path of another site": {"https://*.localhost:PORT {\n" + required + console +
			"}\nhttps://a.localhost:PORT/x/* {\n" + tls("") + "respond hi\n}\n", some},
		"certificates of a name, beside a path of another site": {"https://b.localhost:PORT {\n" + required + console +
			"}\nhttps://a.localhost:PORT/x/* {\n" + tls("") + "respond hi\n}\n", ""},
		"certificates of a name, and the host may be another one": {"https://b.localhost:PORT {\n" + required + console +
			"}\nhttps://a.localhost:PORT/x/* {\n" + tls("") + "respond hi\n}\nLOOSE", some},
		"certificates of all sites": {"https://:PORT {\n" + required + console + "}\nhttps://a.localhost:PORT/x/* {\n" +
			required + "respond hi\n}\n", ""},
		"certificates of Leaders of a path of another site": {"https://:PORT {\n" + pool("trust_pool file "+other.CA.Cert) +
			console + "}\nhttps://a.localhost:PORT/x/* {\n" + required + "handle_path /x/* {\n" + partner + "}\n}\n", shared},
		"certificates of Leaders, and the host may be another one": {"https://b.localhost:PORT {\n" +
			pool("trust_pool file "+other.CA.Cert) + console + "}\nhttps://:PORT {\n" + required + partner +
			"}\nLOOSE", shared},
		"certificates of a host that the site sets": {"https://:PORT {\n" + tls("") + "request_header Host b.localhost\n" +
			"@ops host b.localhost\nhandle @ops {\n" + console + "}\n}\nhttps://b.localhost:PORT {\n" + required +
			"respond 404\n}\n", some},
		"certificates of an authority far above the Leaders'": {"https://localhost:PORT {\n" + pool("trust_pool file "+
			deep.root) + console + "}\nhttps://a.localhost:PORT {\n" + pool("trust_pool file "+deep.below) + partner +
			"}\n", unfinished},
		"certificates of an authority far above the Leaders', by all of them": {"https://localhost:PORT {\n" +
			pool("trust_pool file "+deep.root) + console + "}\nhttps://a.localhost:PORT {\n" + pool("trust_pool file "+
			deep.between+" "+deep.below) + partner + "}\n", shared},
		"Leaders of an authority in two steps": {"https://localhost:PORT {\n" + required + console + "}\n" +
			"https://a.localhost:PORT {\n" + pool("trust_pool file "+deep.root+" "+deep.between+" "+deep.below) + partner +
			"}\n", ""},
		"certificates of Leaders that are named": {"https://localhost:PORT {\n" + required + console + "}\n" +
			"https://a.localhost:PORT {\n" + pool("trusted_leaf_cert_file "+pki.Leader.Cert) + partner + "}\n", unproven},
		"certificates of a pool that is not known, and no Leaders": {"https://localhost:PORT {\n" + unknown + console +
			"}\n", unknownPool},
		"certificates of no pool": {"https://localhost:PORT {\n" + pool("") + console + "}\n", unknownPool},
		"a proxy of all requests": {"http://PLAIN {\nroute {\nreverse_proxy 127.0.0.1:1 {\n@ok status 2xx\n" +
			"handle_response @ok {\nvars a b\n}\n}\n" + console + "}\n}\n", open},
		"Leaders of another authority": {"https://localhost:PORT {\n" + required + console + "}\n" +
			"https://a.localhost:PORT {\n" + pool("trust_pool file "+other.CA.Cert) + partner + "}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			_, port, _ := strings.Cut(s.addr, ":")
			_, otherPort, _ := strings.Cut(freeAddr(t), ":")
			sites, options := c.sites, "auto_https off\n"
			if before, found := strings.CutSuffix(sites, "LOOSE"); found {
				sites, options = before, options+loose
			}
			config, out, err := s.tryLogged(options, strings.NewReplacer("PLAIN", s.addr, "PORT", port,
				"OTHER", otherPort, "SOCKET", filepath.Join(s.dir, "s")).Replace(sites))
			var read caddy.Config
			if err := json.Unmarshal([]byte(config), &read); err != nil {
				t.Fatal(err)
			}
			refused := c.want != "" && c.want != warned
			if (err != nil) != refused || err != nil && !strings.Contains(err.Error(), "aip_console at ") ||
				err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("the configuration is answered with %v, want %q", err, c.want)
			}
			if said := caddy.Validate(&read); (said != nil) != refused || refused && !strings.Contains(said.Error(), c.want) {
				t.Errorf("the validation says %v, want %q", said, c.want)
			}
			if got := bytes.Contains(out, []byte("the console may change tasks")); got != (c.want == warned) {
				t.Errorf("there is a warning: %t\n%s", got, out)
			}
		})
	}
}

// withinUnknown is a handler with another one in it.
type withinUnknown struct {
	// The other one.
	Next json.RawMessage `json:"next" caddy:"namespace=http.handlers inline_key=handler"`
}

func init() { caddy.RegisterModule(withinUnknown{}) }

func (withinUnknown) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.test_within", New: func() caddy.Module { return new(withinUnknown) }}
}

func (h *withinUnknown) Provision(ctx caddy.Context) error {
	_, err := ctx.LoadModule(h, "Next")
	return err
}

func (withinUnknown) ServeHTTP(http.ResponseWriter, *http.Request, caddyhttp.Handler) error {
	return nil
}

// TestConsoleWithinUnknown: a console in a handler that is not known is refused, unless it is public.
func TestConsoleWithinUnknown(t *testing.T) {
	for _, public := range []bool{false, true} {
		var c caddy.Config
		if err := json.Unmarshal(fmt.Appendf(nil, `{"admin": {"disabled": true}, "apps": {"aip": {"store": {"driver":
			"memory"}}, "http": {"servers": {"a": {"listen": ["127.0.0.1:0"], "routes": [{"handle": [{"handler": "test_within",
			"next": {"handler": "aip_console", "public": %t}}]}]}}}}}`, public), &c); err != nil {
			t.Fatal(err)
		}
		err := caddy.Validate(&c)
		if public != (err == nil) || err != nil && !strings.Contains(err.Error(), "in the handler test_within;") {
			t.Errorf("public %t: %v", public, err)
		}
	}
}

// chain names the files of authorities, each certified by the one before it.
type chain struct{ root, between, below string }

func makeChain(t *testing.T) (c chain) {
	t.Helper()
	var above *x509.Certificate
	var signer *ecdsa.PrivateKey
	for i, file := range []*string{&c.root, &c.between, &c.below} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		made := &x509.Certificate{SerialNumber: big.NewInt(int64(i) + 1), NotAfter: time.Now().Add(time.Hour),
			Subject: pkix.Name{CommonName: fmt.Sprint("CA ", i)}, IsCA: true, BasicConstraintsValid: true,
			KeyUsage: x509.KeyUsageCertSign}
		if above == nil {
			above, signer = made, key
		}
		der, err := x509.CreateCertificate(rand.Reader, made, above, key.Public(), signer)
		if err != nil {
			t.Fatal(err)
		}
		*file = filepath.Join(t.TempDir(), "ca.pem")
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		if err := os.WriteFile(*file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		above, signer = made, key
	}
	return c
}

// TestSharedTasks holds that an operator is warned of a mount with identity off that has the tasks of another mount.
func TestSharedTasks(t *testing.T) {
	off := func(path, more string) string {
		return "aip_gateway " + path + "* http://127.0.0.1:1 {\nbase_path " + path + "\nidentity off\n" + more + "\n}\n"
	}
	const proven = "aip_gateway /b* http://127.0.0.1:1 {\nbase_path /b\nidentity optional\n}\n"
	for name, c := range map[string]struct {
		mounts string
		want   int
	}{
		"alone":              {off("/a", ""), 0},
		"beside another":     {off("/a", "") + proven, 1},
		"two beside it":      {off("/a", "") + off("/c", "") + proven, 2},
		"both are off":       {off("/a", "") + off("/c", ""), 0},
		"of another Partner": {off("/a", "aic 10001000011K912345E789ABCDEF2353") + proven, 0},
	} {
		s := newSite(t)
		_, out := s.loadLogged("", "http://"+s.addr+" {\n"+c.mounts+"respond 404\n}\n")
		if got := bytes.Count(out, []byte("has the same tasks")); got != c.want {
			t.Errorf("%s: there are %d warnings, want %d:\n%s", name, got, c.want, out)
		}
	}
}

// TestConsoleHost holds that a page of a stranger cannot reach a console by a name that it has given to the address of
// the console, where nothing but the address protects it.
//
// Promise: a console that only its address protects
func TestConsoleHost(t *testing.T) {
	hash := "$2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG"
	for name, c := range map[string]struct {
		site, host string // PORT stands for the port
		want       int
	}{
		"an address":                   {"http://:PORT {\nbind 127.0.0.1\naip_console\n}\n", "127.0.0.1:PORT", 200},
		"localhost":                    {"http://:PORT {\nbind 127.0.0.1\naip_console\n}\n", "LocalHost:PORT", 200},
		"below localhost":              {"http://:PORT {\nbind 127.0.0.1\naip_console\n}\n", "ops.localhost:PORT", 200},
		"IPv6":                         {"http://:PORT {\nbind 127.0.0.1\naip_console\n}\n", "[::1]", 200},
		"a name":                       {"http://:PORT {\nbind 127.0.0.1\naip_console\n}\n", "evil.example:PORT", 421},
		"a name, with a local address": {"http://:PORT {\nbind 127.0.0.1\naip_console\n}\n", "127.0.0.1.evil.example", 421},
		"a name, public": {"http://:PORT {\nbind 127.0.0.1\naip_console {\npublic\n}\n}\n", "evil.example",
			421},
		"the name of the site": {"http://ops.example:PORT {\nbind 127.0.0.1\naip_console\n}\n", "ops.example:PORT",
			200},
		"a name, for all, public": {"http://:PORT {\naip_console {\npublic\n}\n}\n", "ops.example", 200},
		"a name, some addresses": {"http://:PORT {\n@here remote_ip 127.0.0.1\nhandle @here {\naip_console\n}\n}\n",
			"evil.example", 421},
		"a name, by a password": {"http://:PORT {\nbind 127.0.0.1\nbasic_auth {\nann " + hash + "\n}\naip_console\n}\n",
			"ops.example", 401},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			_, port, _ := strings.Cut(s.addr, ":")
			s.loadLogged("auto_https off\n", strings.ReplaceAll(c.site, "PORT", port))
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.addr+"/aip/tasks", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = strings.ReplaceAll(c.host, "PORT", port)
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != c.want {
				t.Errorf("a request for %s is answered %s, want %d", r.Host, res.Status, c.want)
			}
		})
	}
}
