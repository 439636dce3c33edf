// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf/conftest"
	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
)

const (
	aic      = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"
	otherAIC = "10001000011K912345E789ABCDEF2353"
)

// read reads an agent as in a Caddyfile, and checks it.
func read(text string) (a Config, err error) {
	p := conftest.Parser(text)
	if Read(p, &a); p.Failed() != nil {
		return a, p.Failed()
	}
	a.FillDefaults()
	return a, a.Validate()
}

// TestMistakes: what is said about each mistake, before a file is read.
func TestMistakes(t *testing.T) {
	with := func(options string) string { return "agent a2a https://a.example {\n" + options + "\n}" }
	aip := func(options string) string { return "agent aip " + aic + " {\n" + options + "\n}" }
	aun := func(options string) string { return "agent aun agent.aid.pub {\n" + options + "\n}" }
	assignee := func(options string) string { return "agent aun-assignee agent.aid.pub {\n" + options + "\n}" }
	api := func(options string) string { return "agent agentapi http://a.example/process {\n" + options + "\n}" }
	long := "http://a.example/" + strings.Repeat("x", 400)
	conftest.Refuses(t, map[string]string{
		"agent":     "agent needs a dialect and a URL: agent a2a/legacy http://127.0.0.1:9101, at Testfile:1",
		"agent a2a": "agent a2a needs a URL, such as http://127.0.0.1:9101, at Testfile:1",
		"agent http://a.example a2a": `agent takes a dialect and a URL, in this order, but "a2a" follows the URL, at ` +
			`Testfile:1`,
		"agent a2a http://a.example b": `agent takes a dialect and a URL, but there is also "b", at Testfile:1`,
		"agent aun":                    "agent aun needs the AID of the agent, such as agent.aid.pub, at Testfile:1",
		"agent aun a.aid.pub wss://a.example b": `agent aun takes an AID and a URL, but there is also "b", at ` +
			`Testfile:1`,
		// The URL.
		"agent {env.AGENT}": "agent: the URL cannot have the placeholder {env.AGENT}; in a Caddyfile, write {$AGENT}, " +
			"which is replaced when the file is read",
		"agent a2a a.example":          `agent: "a.example" is no http or https URL; write http://a.example`,
		"agent a2a ftp://a.example":    `agent: "ftp://a.example" is no http or https URL`,
		"agent a2a http://":            `agent: "http://" is no http or https URL`,
		"agent a2a http://a.example:x": `agent: "http://a.example:x" is no http or https URL`,
		"agent a2a " + long:            "agent: the URL has 417 bytes, but must have no more than 400",
		"agent a2a/1.0-grpc a.example:1": `agent: "a.example:1" is no URL for gRPC; write http:// for a server without ` +
			`TLS, else https://`,
		"agent a2a/1.0-grpc http://": `agent: "http://" is no http or https URL`,
		"agent a2a https://me:hunter2@a.example": "agent: put credentials into header_up, not into the URL, which is " +
			"logged",
		"agent aun a.aid.pub https://a.example": `agent: "https://a.example" is no wss or ws URL`,
		// The AIC and the AID.
		"agent aip 1.2":          `agent: "1.2": levels 1 to 4 of the AIC are not 1.2.156.3088`,
		`agent a2a "" {` + "\n}": `agent: "" is no http or https URL; write http://`,
		"agent aun alone":        `agent: "alone" is not an AID: it must have the form name.issuer, as in alice.aid.pub`,
		"agent aun-assignee alone": `agent: "alone" is not an AID: it must have the form name.issuer, as in ` +
			`alice.aid.pub`,
		// Options.
		with("max_runs_per_leader -1"): "agent: max_runs_per_leader is -1, but must not be negative; 0 means no bound",
		with("timeout -1s"):            "agent: timeout is -1s, but must not be negative",
		with("card {env.CARD}://x"): "agent: card cannot have the placeholder {env.CARD}; in a Caddyfile, write {$CARD}, " +
			"which is replaced when the file is read",
		with("card https://me:hunter2@a.example/card"): "agent: card: write an http or https URL without a user, or the " +
			"name of a file",
		with("expose all"):      "agent: expose and cancel_path are for an agent of agentapi, not of a2a",
		with("idle_window 10s"): "agent: aid, identity, roots and idle_window are for an agent of aun, not of a2a",
		api("streams on"):       "agent: streams is for an agent of A2A or AIP, not of agentapi",
		api("check 10s"):        "agent: check is for an agent of A2A or AIP, not of agentapi",
		api("expose all"):       `agent: expose is "all", but must be none, status or product`,
		api("cancel_path stop"): `agent: cancel_path: "stop" is no path that begins with a slash`,
		aun("header_up X y"):    "agent: header_up is not for an agent of aun",
		aun("idle_window -1s"):  "agent: idle_window is -1s, but must not be negative; 0 means its default",
		aun("cancel_path /x"):   "agent: expose and cancel_path are for an agent of agentapi, not of aun",
		// What to do after a broken connection.
		with("resend"): "resend needs after and a duration, such as after 10s, or never or always, alone or before " +
			"that, at Testfile:2",
		with("resend sometimes"): "resend needs after and a duration, such as after 10s, or never or always, alone or " +
			"before that, at Testfile:2",
		with("resend never always"): "resend needs after and a duration, such as after 10s, or never or always, alone or " +
			"before that, at Testfile:2",
		with("resend after soon"): "resend after needs a duration, such as 10s, at Testfile:2",
		with("resend after -1s"): "agent: resend after is -1s, but must not be negative; 0 means that the agent is asked " +
			"once",
		// Certificates.
		"agent a2a http://a.example {\ntls {\naic " + aic + "\n}\n}": "agent: aic and verify in tls need an https URL",
		"agent a2a http://a.example {\ntls {\nrevocation\n}\n}": "agent: revocation in tls is for an agent at an https " +
			"URL, or one that is found by its AIC",
		aun("tls {\naic " + aic + "\n}"): "agent: aic and verify in tls are not for an agent of AUN, whose identity is " +
			"its AID",
		assignee("tls {\nverify name\n}"): "agent: aic and verify in tls are not for an agent of AUN, whose identity is " +
			"its AID",
		with("tls {\nclient_cert cert.pem\n}"): "client_cert needs a certificate and a key, both PEM files, or aip for " +
			"the one that is obtained, at Testfile:3",
		// The caller.
		aun("caller {\nheaders\n}"): "agent: caller is not for an agent of AUN, whose connection is for all " +
			"callers",
		assignee("caller {\njwt {\n}\n}"): "agent: caller is not for an agent of AUN, whose connection is for all " +
			"callers",
		with("caller {\njwt {\nheader \"a b\"\n}\n}"): `agent: caller: "a b" is no name of a header field`,
		with("header_up aip-leader x\ncaller {\nheaders\n}"): "agent: caller sets the header field Aip-Leader; leave it " +
			"out of header_up",
		with("header_up authorization x\ncaller {\njwt {\nheader Authorization\n}\n}"): "agent: caller sets the header " +
			"field Authorization; leave it out of header_up",
		with("header_up aip-token x\ncaller {\njwt {\n}\n}"): "agent: caller sets the header field Aip-Token; leave it " +
			"out of header_up",
		with("caller {\nheaders\njwt {\nheader aip-leader\n}\n}"): "agent: caller: jwt needs a header field of its own, " +
			"and headers has Aip-Leader",
		aip("resend never always"): "resend needs after and a duration, such as after 10s, or never or always, alone or " +
			"before that, at Testfile:2",
	}, func(text string) error {
		_, err := read(text)
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: a password is shown", text)
		}
		return err
	})
}

// TestMistakesInJSON: what a Caddyfile cannot say is refused in JSON.
func TestMistakesInJSON(t *testing.T) {
	for want, a := range map[string]Config{
		"agent: only an agent of aip or aip/2 is found by its AIC, not of a2a": {AIC: aic},
		"agent: it has an AIC and a URL; write agent aip <url>, and the AIC into its tls, or only the AIC": {
			Dialect: "aip", AIC: aic, URL: "https://a.example"},
		"agent: resend is never and always; write one of them": {URL: "http://a.example",
			Resend: Resend{Never: true, Always: true}},
		`agent: "wss://me:hunter2@a.example" is no wss or ws URL`: {Dialect: "aun", URL: "wss://me:hunter2@a.example",
			AUN: AUN{AID: "agent.aid.pub"}},
	} {
		a.FillDefaults()
		if err := a.Validate(); err == nil || err.Error() != want {
			t.Errorf("said is %v, want %s", err, want)
		}
	}
}

// TestRead: what each form of an agent sets, and which name it has.
func TestRead(t *testing.T) {
	for text, want := range map[string]struct {
		set  func(*Config)
		name string
	}{
		"agent http://a.example": {func(c *Config) { c.Dialect, c.URL = "a2a", "http://a.example" }, "http://a.example"},
		"agent aip " + strings.ToLower(aic): {func(c *Config) {
			c.Dialect, c.AIC, c.TLS.ServerIdentity = "aip", aic, pki.ServerIdentity{AIC: []string{aic}}
		}, "aic:" + aic},
		"agent aip/2 " + aic + " {\ntls {\naic " + otherAIC + "\nrevocation\n}\n}": {func(c *Config) {
			c.Dialect, c.AIC, c.TLS.AIC, c.TLS.Revocation = "aip/2", aic, []string{otherAIC}, true
		}, "aic:" + aic},
		"agent aip https://a.example": {func(c *Config) { c.Dialect, c.URL = "aip", "https://a.example" },
			"https://a.example"},
		"agent aun agent.aid.pub": {func(c *Config) { c.Dialect, c.AID = "aun", "agent.aid.pub" }, "aun:agent.aid.pub"},
		"agent aun agent.aid.pub wss://a.example {\nidentity own.pem\nroots a.pem b.pem\nidle_window 1m\n}": {
			func(c *Config) {
				c.Dialect, c.URL = "aun", "wss://a.example"
				c.AUN = AUN{AID: "agent.aid.pub", Identity: "own.pem", Roots: []string{"a.pem", "b.pem"},
					IdleWindow: caddy.Duration(time.Minute)}
			}, "aun:agent.aid.pub"},
		"agent aun-assignee Agent.AID.pub": {func(c *Config) { c.Dialect, c.URL = "aun-assignee", "agent.aid.pub" },
			"agent.aid.pub"},
		"agent agentapi http://a.example {\nexpose status\ncancel_path /stop?now=1\n}": {func(c *Config) {
			c.Dialect, c.URL, c.AgentAPI = "agentapi", "http://a.example", AgentAPI{"status", "/stop?now=1"}
		}, "http://a.example"},
		"agent a2a http://a.example {\nresend always after 0s\nretry_for 0s\nheader_up x-key {env.KEY}\n" +
			"tls {\nclient_cert aip\n}\ncaller {\nheaders\njwt {\naudience me\nheader X-Token\n}\n}\n}": {func(c *Config) {
			c.Dialect, c.URL, c.Resend.Always = "a2a", "http://a.example", true
			c.Resend.After, c.RetryFor = new(caddy.Duration(0)), new(caddy.Duration(0))
			c.HeaderUp, c.TLS.Obtained = http.Header{"X-Key": {"{env.KEY}"}}, true
			c.Caller = Caller{Headers: true, JWT: &CallerJWT{Audience: "me", Header: "X-Token"}}
		}, "http://a.example"},
	} {
		got, err := read(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		var c Config
		want.set(&c)
		c.FillDefaults()
		if diff := cmp.Diff(c, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
		if got.Name() != want.name {
			t.Errorf("%q has the name %s, want %s", text, got.Name(), want.name)
		}
	}
}
