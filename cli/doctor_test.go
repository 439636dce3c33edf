// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	"github.com/aip-gateway/aip-gateway/aun/auntest"
	_ "github.com/aip-gateway/aip-gateway/caddymodule"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/cli"
	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/internal/freeport"
	"github.com/aip-gateway/aip-gateway/internal/legacyagent"
)

// setup is a set-up for a test to break.
type setup struct {
	dir, cert, key, roots, mode string
	agent, handle, options      string // handle replaces the handler of agent
	store                       string
	site, global                string // the site's name, by default localhost, and more global options
}

// newSetup returns a working one.
func newSetup(t *testing.T) *setup {
	t.Helper()
	dir := t.TempDir()
	pki, err := devpki.Make(devpki.Options{Dir: filepath.Join(dir, "pki")})
	if err != nil {
		t.Fatal(err)
	}
	agent := legacyagent.New(legacyagent.Options{})
	server := httptest.NewServer(agent)
	t.Cleanup(func() {
		server.Close()
		agent.Close()
	})
	return &setup{dir: dir, cert: pki.Server.Cert, key: pki.Server.Key, roots: pki.CA.Cert, mode: "require_and_verify",
		agent: "a2a/legacy " + server.URL, store: "pebble " + filepath.Join(dir, "store")}
}

// write writes the Caddyfile and returns its path.
func (s *setup) write(t *testing.T) string {
	t.Helper()
	if s.handle == "" {
		s.handle = "aip_gateway {\nagent " + s.agent + "\n" + s.options + "\n}"
	}
	auth := ""
	if s.mode != "" {
		auth = "client_auth {\nmode " + s.mode + "\ntrust_pool file " + s.roots + "\n}\n"
	}
	path := filepath.Join(s.dir, "Caddyfile")
	text := fmt.Sprintf("{\nadmin off\nauto_https off\n%s\naip {\nstore %s\n}\n}\n"+
		"https://%s:8443 {\ntls %s %s {\n%s}\n%s\n}\n", s.global, s.store, cmp.Or(s.site, "localhost"), s.cert, s.key, auth,
		s.handle)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// issue makes a certificate of its own issuer, and returns its file and its key's.
func issue(t *testing.T, dir string, change func(*x509.Certificate)) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "made"},
		DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	change(c)
	der, err := x509.CreateCertificate(rand.Reader, c, c, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "made.pem"), filepath.Join(dir, "made-key.pem")
	for file, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func expiresSoon(c *x509.Certificate) {
	c.NotBefore, c.NotAfter = time.Now().Add(-1000*time.Hour), time.Now().Add(time.Hour)
}

// closedPort returns an address without a listener.
func closedPort(t *testing.T) string {
	t.Helper()
	return fmt.Sprint("127.0.0.1:", freeport.Closed(t))
}

// serveAgent serves a stand-in for an agent.
func serveAgent(t *testing.T, h http.HandlerFunc) (url string) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

const partnerAIC = "10001000011K912345E789ABCDEF2353"

// TestDoctor breaks a set-up in many ways. Each has a sentence.
func TestDoctor(t *testing.T) {
	made := func(change func(*x509.Certificate)) func(*testing.T, *setup) {
		return func(t *testing.T, s *setup) { s.cert, s.key = issue(t, s.dir, change) }
	}
	options := func(text string) func(*testing.T, *setup) {
		return func(_ *testing.T, s *setup) { s.options = text }
	}
	aun := func(valid, next time.Duration) func(*testing.T, *setup) {
		return func(t *testing.T, s *setup) {
			pki := auntest.NewPKI(t)
			own, roots, crl := filepath.Join(s.dir, "own.pem"), filepath.Join(s.dir, "of-aun.pem"), filepath.Join(s.dir, "crl")
			id := pki.IdentityFor("gateway.aid.test", elliptic.P256(), valid)
			if err := errors.Join(id.Save(own, false), os.WriteFile(roots, pki.RootsPEM(), 0o600),
				os.WriteFile(crl, pki.RevokeUntil(id, time.Now().Add(next)), 0o600)); err != nil {
				t.Fatal(err)
			}
			s.store += "\naun {\ncert " + own + "\nroots " + roots + "\ncrl " + crl + "\n}"
		}
	}
	for _, tc := range []struct {
		name  string
		do    func(*testing.T, *setup)
		check string
		level doctor.Status
		want  string
	}{
		{"a Caddyfile that cannot be adapted", options("colour blue"), "configuration", doctor.Broken,
			`there is no "colour" in aip_gateway.*; correct it`},
		{"an AIC", options("aic 10001000011K912345E789ABCDEF2354"), "configuration", doctor.Broken,
			`aic: .*check digits.*Caddyfile:\d+; correct it$`},
		{"what Caddy refuses", func(_ *testing.T, s *setup) { s.handle = "aip_gateway " + s.agent + "\nencode nothing" },
			"configuration", doctor.Broken, `encod.*; correct it$`},
		{"a certificate without an AIC", made(func(*x509.Certificate) {}), "aic", doctor.Warning,
			`shows no certificate with one: Leaders of AIP 2 refuse its answers; have the site show the Partner's`},
		{"a site at an IP address", func(_ *testing.T, s *setup) { s.site = "127.0.0.1" }, "client_auth", doctor.Broken,
			`the IP address 127.0.0.1, so that Caddy answers every request with 421; .* write default_sni 127.0.0.1 and `},
		{"a site at an IP address that asks nobody", func(_ *testing.T, s *setup) {
			s.site, s.global = "127.0.0.1", "servers {\nstrict_sni_host insecure_off\n}"
		}, "client_auth", doctor.Broken, `so that they are asked for no certificate; .* write default_sni 127.0.0.1 and `},
		{"a policy that is tried", options("policy {\nallow\ndry_run\n}"), "policy", doctor.Warning, `^dry_run is set`},
		{"a rule after one that has all", options("policy {\nallow\ndeny late command get\n}"), "policy",
			doctor.Warning, `^the rule 1 has every call`},
		{"a rule that needs a proof", options("identity off\npolicy {\nallow claim scope x\n}"), "policy",
			doctor.Warning, `^identity is off, .* of the rule 1 never holds`},
		{"a quota that is not kept", func(_ *testing.T, s *setup) {
			s.options, s.store = "quota q {\nstarts 5/day\n}", "memory"
		}, "policy", doctor.Warning, `the quota q has counted of a day is lost`},
		{"a missing certificate", func(_ *testing.T, s *setup) { s.cert += ".no" }, "certificate", doctor.Broken,
			`cannot be read \(open .*; correct its path`},
		{"another key", func(t *testing.T, s *setup) { _, s.key = issue(t, s.dir, func(*x509.Certificate) {}) },
			"certificate", doctor.Broken, `its key .* cannot be used .*; name the key that it was issued for$`},
		{"an expired certificate", made(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }),
			"certificate", doctor.Broken, `of made has expired on .*; renew it`},
		{"one that expires soon", made(expiresSoon), "certificate", doctor.Warning, `of made expires on .*; renew it`},
		{"a CA of agents that expires soon", func(t *testing.T, s *setup) {
			ca, _ := issue(t, t.TempDir(), expiresSoon)
			s.agent += " {\ntls {\nca " + ca + "\n}\n}"
		}, "certificate", doctor.Warning, `of made expires on .*; renew it`},
		{"a wrong path of its dialect", func(t *testing.T, s *setup) {
			legacy := legacyagent.New(legacyagent.Options{})
			t.Cleanup(func() { legacy.Close() })
			s.agent = "a2a/legacy " + serveAgent(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/" && !strings.HasPrefix(r.URL.Path, "/.well-known/") {
					http.NotFound(w, r)
					return
				}
				legacy.ServeHTTP(w, r)
			}) + "/wrong"
		}, "agent", doctor.Broken, `^its endpoint of a2a/legacy is at another URL; write agent a2a/legacy http://`},
		{"a certificate that is not trusted", func(t *testing.T, s *setup) {
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.StartTLS()
			t.Cleanup(server.Close)
			s.agent = "a2a " + server.URL
		}, "agent", doctor.Broken, `^the agent's certificate is not trusted \(.*\); check ca and server_name`},
		{"something that is no agent", func(t *testing.T, s *setup) {
			s.agent = "a2a " + serveAgent(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusBadRequest)
			})
		}, "agent", doctor.Broken,
			`^the agent shows no card, [^(]*\(GetTask: HTTP 400\); [^(]*agent a2a/legacy <endpoint>, or a2a/0.3, a2a/1.0$`},
		{"an AID that expires soon", aun(5*time.Minute, time.Hour), "certificate", doctor.Warning,
			`of gateway.aid.test expires on .*; renew it`},
		{"a list of revoked certificates that is old", aun(1000*time.Hour, -time.Minute), "certificate", doctor.Warning,
			`^the next list of revoked certificates of CN=aid.test is there on .*; get it`},
		{"a clock that is slow", made(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }),
			"certificate", doctor.Broken, `is valid only from .*; correct the clock of this machine`},
		{"a certificate for clients", made(func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		}), "certificate", doctor.Broken, `lacks serverAuth, so that Leaders refuse it; have it issued with serverAuth$`},
		{"a certificate without a name", made(func(c *x509.Certificate) { c.DNSNames = nil }), "certificate",
			doctor.Broken, `no DNS name and no IP address.*; have it issued`},
		{"a time for whole answers", func(_ *testing.T, s *setup) {
			s.global = "servers {\ntimeouts {\nwrite 30s\n}\n}"
		}, "timeouts", doctor.Warning, `cuts each stream of the site after 30s, .*; remove write from the timeouts`},
		{"a chain in the wrong order", func(t *testing.T, s *setup) {
			other, _ := issue(t, s.dir, func(*x509.Certificate) {})
			first, _ := os.ReadFile(s.cert)
			second, _ := os.ReadFile(other)
			s.cert = filepath.Join(s.dir, "chain.pem")
			if err := os.WriteFile(s.cert, append(first, second...), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "certificate", doctor.Broken, `is not signed by the one that follows it in the file; put`},
		{"the certificate of another Partner", options("aic " + partnerAIC), "certificate", doctor.Warning,
			`it names the AIC .*, which is the aic of no aip_gateway; set aic`},
		{"no client_auth", func(_ *testing.T, s *setup) { s.mode = "" }, "client_auth", doctor.Broken,
			`identity is required, but the site verifies no client certificates, .*mode require_and_verify`},
		{"client_auth that does not verify", func(_ *testing.T, s *setup) { s.mode = "require" }, "client_auth",
			doctor.Broken, `verifies no client certificates`},
		{"identity optional, required certificates", options("identity optional"), "client_auth", doctor.Warning,
			`set mode verify_if_given in client_auth`},
		{"identity off", options("identity off"), "client_auth", doctor.Warning, `set identity to required$`},
		{"identity off beside a mount with it", func(_ *testing.T, s *setup) {
			mount := func(path, identity string) string {
				return "handle " + path + "/* {\naip_gateway {\nagent " + s.agent + "\nbase_path " + path + "\nidentity " +
					identity + "\n}\n}\n"
			}
			s.handle = mount("/a", "required") + mount("/b", "off")
		}, "client_auth", doctor.Warning, `off at /b/, and required at /a/, .* give this one another aic`},
		{"a console that is open", func(_ *testing.T, s *setup) {
			s.mode, s.handle = "verify_if_given",
				"aip_gateway {\nagent "+s.agent+"\nidentity optional\n}\naip_console {\nallow cancel try\n}"
		}, "console", doctor.Broken, `the console shows all tasks, .* or forward_auth, .* to the site; .* write public`},
		{"a console for Leaders", func(_ *testing.T, s *setup) { s.handle = "aip_gateway " + s.agent + "\naip_console" },
			"console", doctor.Broken, `certificates that open an aip_gateway .* another trust_pool`},
		{"a trust_pool that is no CA", func(_ *testing.T, s *setup) { s.roots = s.cert }, "client_auth", doctor.Broken,
			`is not that of a CA.*; put the CAs of Leaders into trust_pool$`},
		{"another base_path", func(_ *testing.T, s *setup) {
			s.handle = "handle /a/* {\naip_gateway {\nagent " + s.agent + "\nbase_path /b\n}\n}"
		}, "base_path", doctor.Broken, `its base_path is "/b" and its route takes only /a/\*; set base_path to "/a"$`},
		{"a base_path that handle_path removes", func(_ *testing.T, s *setup) {
			s.handle = "handle_path /a/* {\naip_gateway {\nagent " + s.agent + "\nbase_path /a\n}\n}"
		}, "base_path", doctor.Warning, `so that the Partner is at /a/a; remove base_path`},
		{"no agent", func(t *testing.T, s *setup) { s.agent = "a2a/legacy http://" + closedPort(t) }, "agent",
			doctor.Broken, `^the agent cannot be reached; start it, or correct its URL \(.*refused\)`},
		{"credentials", func(t *testing.T, s *setup) {
			s.agent = "a2a/legacy " + serveAgent(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusUnauthorized)
			})
		}, "agent", doctor.Broken, `refuses the gateway's credentials.*; check header_up in agent`},
		{"a wrong path", func(t *testing.T, s *setup) { s.agent = "aip " + serveAgent(t, http.NotFound) + "/x" },
			"agent", doctor.Broken, `no agent answers.*; check the URL of agent`},
		{"a wrong dialect", func(_ *testing.T, s *setup) { s.agent = strings.Replace(s.agent, "legacy", "1.0", 1) },
			"agent", doctor.Broken, `it does not speak a2a/1.0 at this URL, but a2a/legacy; write agent a2a/legacy http://`},
		{"aip in front of an A2A agent", func(_ *testing.T, s *setup) {
			s.agent = strings.Replace(s.agent, "a2a/legacy", "aip", 1)
		}, "agent", doctor.Broken, `it does not speak aip at this URL, but a2a/legacy; write agent a2a/legacy http://`},
		{"the Agent API in front of an A2A agent", func(_ *testing.T, s *setup) {
			s.agent = strings.Replace(s.agent, "a2a/legacy", "agentapi", 1)
		}, "agent", doctor.Broken, `it does not speak agentapi at this URL, but a2a/legacy; write agent a2a/legacy http://`},
		{"A2A in front of an agent of the Agent API", func(t *testing.T, s *setup) {
			s.agent = "a2a/1.0 " + serveAgent(t, func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, `data: {"error":"1 validation error for AgentRequest\ninput\n  Field required"}`+"\n\n")
			})
		}, "agent", doctor.Broken, `it does not speak a2a/1.0 at this URL, but agentapi; write agent agentapi http://`},
		{"a page in place of an agent of AIP", func(t *testing.T, s *setup) {
			s.agent = "aip " + serveAgent(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })
		}, "agent", doctor.Broken, `^the agent's answer is no JSON-RPC response`},
		{"a page in place of an agent of the Agent API", func(t *testing.T, s *setup) {
			s.agent = "agentapi " + serveAgent(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })
		}, "agent", doctor.Warning, `does not answer as an agent of agentapi does; check its URL and its dialect$`},
		{"https at a plain agent", func(_ *testing.T, s *setup) { s.agent = strings.Replace(s.agent, "http:", "https:", 1) },
			"agent", doctor.Broken, `^the agent does not speak TLS at this URL \(.*\); write http:// in the URL of agent`},
		{"gRPC at a server of HTTP/1", func(t *testing.T, s *setup) {
			s.agent = "a2a/1.0-grpc " + serveAgent(t, http.NotFound)
		}, "agent", doctor.Broken, `^the agent's server does not speak HTTP/2, which gRPC needs`},
		{"a clock that is wrong", func(t *testing.T, s *setup) {
			s.agent = "agentapi " + serveAgent(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
			})
		}, "clock", doctor.Warning, `this machine is (1h0m0s|59m\d+s) behind that of the agent; synchronise both with NTP$`},
		{"a file for a store", func(_ *testing.T, s *setup) { s.store = "pebble " + s.cert }, "store", doctor.Broken,
			`is a file, but must be a directory`},
		{"files in the store", func(_ *testing.T, s *setup) { s.store = "pebble " + filepath.Dir(s.cert) }, "store",
			doctor.Broken, `is not a store, but holds files.*; set an empty directory`},
		{"no broker", func(t *testing.T, s *setup) {
			s.store += "\nnotify {\nallow_networks 127.0.0.0/8\n}"
			s.options = "aic " + partnerAIC + "\ngroup {\nallow_brokers " + closedPort(t) + "\n}"
		}, "broker", doctor.Broken, `^it cannot be reached .*refused.*; start it, or correct its host and port`},
		{"an agent by its AIC", func(t *testing.T, s *setup) {
			s.store += "\nfind {\nagent " + partnerAIC + " https://" + closedPort(t) + "\n}"
			s.agent = "aip " + partnerAIC
		}, "agent", doctor.Broken, `^the agent cannot be reached; start it, or correct its URL \(.*refused\)`},
		{"an agent by an AIC that nobody knows", func(t *testing.T, s *setup) {
			s.store += "\nfind {\nregistry " + serveAgent(t, http.NotFound) + "\n}"
			s.agent = "aip " + partnerAIC
		}, "agent", doctor.Broken, `^the agent is not registered \(.*knows no such agent`},
		{"an AIC in a URL that no mount has", options("aic " + partnerAIC + "\npublic_url https://localhost:8443/{AIC}"),
			"base_path", doctor.Warning, `but the Partner is at "/": .* set base_path to "/` + partnerAIC + `"$`},
		{"no credential for certificates", func(_ *testing.T, s *setup) {
			s.store += "\ncertificates https://ca.example/acps-atr-v2/acme/directory"
			s.options = "aic 1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"
		}, "certificate", doctor.Broken, `no account at the authority, and no credential .* name it by eab`},
		{"a broker before there is a certificate", func(t *testing.T, s *setup) {
			eab := filepath.Join(s.dir, "eab.json")
			if err := os.WriteFile(eab, []byte(`{"keyId":"k","macKey":"`+strings.Repeat("A", 43)+`","aic":"1.2.156.3088.`+
				`1.1.34C2.478BDF.3GF546.0JU4","expiresAt":"2999-01-01T00:00:00Z"}`), 0o600); err != nil {
				t.Fatal(err)
			}
			s.store += "\ncertificates https://ca.example/acps-atr-v2/acme/directory {\neab {file." + eab + "}\n}"
			s.options = "aic 1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4\ngroup {\nallow_brokers " + closedPort(t) +
				"\ntls {\nclient_cert aip\n}\n}"
		}, "broker", doctor.Warning, `^no broker was asked: there is no certificate of .* yet`},
		{"a draft that a registry refuses", func(t *testing.T, s *setup) {
			s.store += "\nregistry http://" + closedPort(t) + " {\nuser a b\n}"
			s.options = "aic registered\npublic_url https://localhost:8443"
		}, "acs", doctor.Broken, `^a registry would refuse it: provider`},
		{"no issuer of tokens", func(t *testing.T, s *setup) {
			s.options = "aic " + partnerAIC + "\naac {\nissuer sts http://" + closedPort(t) + "/jwks\n" +
				"allow_networks 127.0.0.0/8\n}"
		}, "issuer", doctor.Broken, `^its keys cannot be fetched, so its tokens are refused: .*refused`},
		{"a broker that egress refuses", func(t *testing.T, s *setup) {
			s.options = "aic " + partnerAIC + "\ngroup {\nallow_brokers " + closedPort(t) + "\n}"
		}, "broker", doctor.Broken, `may not connect to it .*; use amqps://, or add its network to allow_networks`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSetup(t)
			tc.do(t, s)
			got := cli.RunAIP(t, "doctor", "--config", s.write(t), "--json")
			if (got.Status == 1) != (tc.level == doctor.Broken) {
				t.Errorf("exit status %d", got.Status)
			}
			if all := gjson.Get(got.Stdout, "findings.#.status").Array(); tc.level == doctor.Broken &&
				all[len(all)-1].Str != "error" {
				t.Errorf("the errors are not last: %s", got.Stdout)
			}
			found := false
			for _, f := range gjson.Get(got.Stdout, "findings").Array() {
				if f.Get("status").Str == "ok" {
					continue
				}
				match := f.Get("check").Str == tc.check && f.Get("status").Str == string(tc.level) &&
					f.Get("subject").Str != "" && regexp.MustCompile(tc.want).MatchString(f.Get("text").Str)
				if found = found || match; !match && tc.level != doctor.Warning && f.Get("status").Str == "error" {
					t.Errorf("another finding: %s", f.Raw)
				}
			}
			if !found {
				t.Errorf("%s%s\nwant %s", got.Stdout, got.Stderr, tc.want)
			}
			if strings.HasPrefix(s.store, "pebble "+s.dir+"/store") {
				if _, err := os.Stat(filepath.Join(s.dir, "store")); err == nil {
					t.Error("the store was made")
				}
			}
		})
	}
}

// TestDoctorFindsNothing examines a working set-up, and folders without one.
func TestDoctorFindsNothing(t *testing.T) {
	s := newSetup(t)
	t.Chdir(s.dir)
	got := cli.RunAIP(t, "doctor")
	if got.Status != 1 || !strings.Contains(got.Stdout, "no Caddyfile in this directory") {
		t.Errorf("no configuration: %+v", got)
	}
	s.write(t)
	got = cli.RunAIP(t, "doctor")
	if got.Status != 0 || got.Stderr != "" || strings.Contains(got.Stdout, "error") ||
		!strings.Contains(got.Stdout, "it answers requests of a2a/legacy; messages ask for a stream: its card has "+
			"capabilities.streaming\n") {
		t.Errorf("a set-up that works: %+v", got)
	}
	for line := range strings.Lines(got.Stdout) {
		if !strings.HasPrefix(line, "ok ") {
			t.Errorf("a set-up that works: %s", line)
		}
	}
	s.site, s.global = "127.0.0.1", "default_sni 127.0.0.1\nservers {\nstrict_sni_host insecure_off\n}"
	s.write(t)
	if got = cli.RunAIP(t, "doctor"); got.Status != 0 || strings.Contains(got.Stdout, "IP address") {
		t.Errorf("a site at an IP address that works: %+v", got)
	}
	if err := os.WriteFile("Caddyfile", []byte(":8080 {\nrespond hello\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got = cli.RunAIP(t, "doctor")
	if got.Status != 1 || !strings.Contains(got.Stdout, "there is no aip_gateway in the configuration") {
		t.Errorf("no gateway: %+v", got)
	}
}

// TestDoctorOfServedAgent examines a set-up serving its own agent, and not running.
func TestDoctorOfServedAgent(t *testing.T) {
	s := newSetup(t)
	address := closedPort(t)
	s.agent = "a2a/legacy http://" + address
	path := s.write(t)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, "http://"+address+" {\nbind 127.0.0.1\naip_sample_agent\n}\n"...)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	got := cli.RunAIP(t, "doctor", "--config", path)
	if got.Status != 0 || !strings.Contains(got.Stdout, "this configuration serves it, and is not running") {
		t.Errorf("%+v", got)
	}
}
