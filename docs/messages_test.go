// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	"github.com/aip-gateway/aip-gateway/aun/auntest"
)

// TestDocsMessages provokes the messages that `caddy validate` can say.
func TestDocsMessages(t *testing.T) {
	store := func(option string) string { return "{\n" + option + "\n}\n:8443 {\n}\n" }
	jetstream := func(settings string) string { return store("aip {\nstore jetstream " + settings + "\n}") }
	gateway := func(directive string) string { return ":8443 {\n" + directive + "\n}\n" }
	block := func(settings string) string {
		return gateway("aip_gateway a2a/legacy http://127.0.0.1:9101 {\n" + settings + "\n}")
	}
	const aic = "10001000011K912345E789ABCDEF2353"
	secure := func(settings string) string {
		return gateway("aip_gateway {\nagent aip https://127.0.0.1:9101 {\ntls {\n" + settings + "\n}\n}\n}")
	}
	agent := func(settings string) string {
		return gateway("aip_gateway {\nagent a2a/legacy http://127.0.0.1:9101 {\n" + settings + "\n}\n}")
	}
	notify := func(settings string) string { return store("aip {\nnotify {\n" + settings + "\n}\n}") }
	identities := func(pairs string) string { return store("aip {\nidentities {\n" + pairs + "\n}\n}") }
	pki := auntest.NewPKI(t)
	dir, identity := t.TempDir(), pki.Identity("gateway.aid.test")
	own, roots, public := filepath.Join(dir, "own.pem"), filepath.Join(dir, "roots.pem"), filepath.Join(dir, "public.pem")
	if err := errors.Join(identity.Save(own, false), os.WriteFile(roots, pki.RootsPEM(), 0o600),
		os.WriteFile(public, []byte(identity.CertPEM()), 0o600)); err != nil {
		t.Fatal(err)
	}
	signing := own // a key of an AID signs as well
	aunApp := func(more string) string {
		return "{\naip {\naun {\ncert " + own + "\nroots " + roots + "\n" + more + "\n}\n}\n}\n"
	}
	key := func(key string) string { return notify("signing_key " + key) }
	group := func(settings string, more ...string) string {
		return block("aic 10001000011K912345E789ABCDEF2353\ngroup {\n" + settings + "\n}\n" + strings.Join(more, "\n"))
	}
	tokens := func(settings, more string) string {
		return block("aic 10001000011K912345E789ABCDEF2353\naac {\n" + settings + "\n}\n" + more)
	}
	proxied := func(list string) string {
		return "handle_path /" + list + "/* {\naip_gateway a2a/legacy http://127.0.0.1:9101 {\nidentity {\n" +
			"client_cert_header Client-Cert pem from unix {\ntrust_pool " + roots +
			"\nrevocation {\ncrl " + list + "\n}\n}\n}\n}\n}"
	}
	broker := func(pattern string) string { return group("allow_brokers " + pattern) }
	provoke := []struct{ message, config string }{
		{"aac: the handler has no aic, which tokens must name as their audience; set it", block("aac {\n}")},
		{"aac: identity is off, so there is no certificate that tokens come beside; set it to required or optional",
			tokens("", "identity off")},
		{"aac: there is no issuer whose tokens are accepted", tokens("", "")},
		{`aac: replay is "…", but must be off or refuse`, tokens("issuer https://a.example\nreplay on", "")},
		{"aac: a message in a group carries no token, so require would refuse all of them; leave require out, or take " +
			"group to a handler of its own",
			tokens("issuer https://a.example\nrequire", "group {\nallow_brokers a.example\n}")},
		{`aac: the issuer "…" holds a bar, and names of Leaders end an issuer with it`,
			tokens("issuer https://a.example|b", "")},
		{`aac: the algorithm "…" is not supported; use RS256, PS256, ES256, EdDSA`,
			tokens("issuer https://a.example\nalgorithms HS256", "")},
		{"aac: the URL of the keys cannot be used: …", tokens("issuer a http://a.example/jwks", "")},
		{"aac: the issuer, whose OpenID configuration says where its keys are, cannot be used: …", tokens("issuer a", "")},
		{`aac: allow_networks: "…" is no network, such as 10.0.0.0/8`,
			tokens("issuer https://a.example\nallow_networks 10.0.0.1", "")},
		{"identity: off believes every senderId, and looks at no proof; take the proofs out of " +
			"its block, or set required or optional",
			block("identity off {\nmtls\n}")},
		{`identity: accept: there is no dialect "…"`,
			block("identity {\naccept a2b mtls\n}")},
		{`identity: accept …: "…" is no proof; use mtls, client_cert_header, jwt or keys`,
			block("identity {\naccept a2a token\n}")},
		{"identity: no caller of … could prove who it is: that dialect accepts …; configure " +
			"one of them, or say what else it accepts, such as accept … keys",
			block("identity {\nkeys keys\n}")},
		{"identity: client_cert_header needs the name of a header of its own, such as Client-Cert",
			block("identity {\nclient_cert_header Authorization pem from unix\n}")},
		{"identity: keys: header needs the name of a header of its own, such as X-Api-Key; without it, keys come in " +
			"Authorization", block("identity {\nkeys keys {\nheader authorization\n}\n}\ncallers a2a")},
		{`identity: client_cert_header: "…" is no form; use rfc9440, xfcc or pem`,
			block("identity {\nclient_cert_header Client-Cert der from unix\n}")},
		{"identity: client_cert_header needs trust_pool and a file with the roots of the certificates",
			block("identity {\nclient_cert_header Client-Cert pem from unix\n}")},
		{"identity: client_cert_header: the root … has two blocks revocation that differ; write one, as a snippet that " +
			"both import", gateway(proxied("a") + "\n" + proxied("b"))},
		{"client_cert_header needs the name of the header, its form, from and the addresses of the proxy: …",
			block("identity {\nclient_cert_header Client-Cert pem\n}")},
		{`certificates: "…" is no https URL`,
			store("aip {\ncertificates ca\n}")},
		{`certificates: "…" must be https, because others on the way could read and change what is sent`,
			store("aip {\ncertificates http://ca.example/acme/directory\n}")},
		{"certificates: trust_bundle is for an authority of ACPs, whose directory is <url>/acme/directory",
			store("aip {\ncertificates https://ca.example/dir {\ntrust_bundle /tmp/x.pem\n}\n}")},
		{"get_certificate aip needs an authority: write the global option aip { certificates <directory> }",
			"localhost:8443 {\ntls {\nget_certificate aip\n}\n}"},
		{"tls client_cert aip needs the aic of the Partner, and the global option aip { certificates <directory> }",
			secure("client_cert aip")},
		{"revocation: it has no source", store("aip {\nrevocation {\n}\n}")},
		{"amp: write the directory of the files behind it, or set the environment variable AMP_LOG_DIR",
			store("aip {\namp\n}")},
		{"amp: records names \"…\", but there are heartbeat, metrics, access and audit",
			store("aip {\namp /tmp {\nrecords all\n}\n}")},
		{"amp: records has audit, which is signed, but no certificate of sign has the AIC …",
			"{\naip {\namp /tmp {\nrecords audit\n}\n}\n}\n" + block("aic "+aic)},
		{"discovery: \"…\" is no http or https URL", store("aip {\ndiscovery discovery.example.com\n}")},
		{"find: registry: it has no URL, and there is no option registry whose URL it could be",
			store("aip {\nfind {\nregistry\n}\n}")},
		{"find: it has nothing to find agents by; name a registry, a discovery server or an agent",
			store("aip {\nfind {\n}\n}")},
		{"agent is written as: agent <aic> <url> [<dialect>]", store("aip {\nfind {\nagent x\n}\n}")},
		{`find: registry: "…" has a path; write the URL of the registry without one`,
			store("aip {\nfind {\nregistry https://r.example/acps-atr-v2\n}\n}")},
		{`find: agent: "…" is no https URL of an agent, without a user and a #`,
			store("aip {\nfind {\nagent 10001000011K912345E789ABCDEF2353 http://x\n}\n}")},
		{"agent: an agent by its AIC needs the global option aip { find { registry <url> } }",
			gateway("aip_gateway aip 10001000011K912345E789ABCDEF2353")},
		{"the option degrade of revocation is gone; remove it: grace has lists and answers count after their end",
			store("aip {\nrevocation {\ndegrade allow 4h\n}\n}")},
		{"aip_revocation needs sources: write the global option aip { revocation { crl <file> } }",
			"localhost:8443 {\ntls internal {\nclient_auth {\nverifier aip_revocation\n}\n}\n}"},
		{"aip_file needs at least one PEM file with the certificates of CAs",
			"localhost:8443 {\ntls internal {\nclient_auth {\ntrust_pool aip_file\n}\n}\n}"},
		{"policy: it has no rules", block("policy {\n}")},
		{"policy: decide: the URL must begin with http:// or https://, and have a host",
			block("policy {\ndecide opa:8181/v1/data/aip\n}")},
		{"policy: decide: the URL must have no credentials, and no fragment",
			block("policy {\ndecide https://a:b@opa.example.com/v1/data/aip\n}")},
		{`policy: decide: allow_networks: "…" is no network, such as 10.0.0.0/8`,
			block("policy {\ndecide http://127.0.0.1:8181/ {\nallow_networks 10.0.0.1\n}\n}")},
		{"policy: decide: egress: connection refused to …", block("policy {\ndecide http://10.0.0.1:8181/\n}")},
		{`policy: no rule allows a call, so all would be denied; end the rules with "allow"`,
			block("policy {\ndeny\n}")},
		{"policy: two rules have the name …", block("policy {\nallow a\nallow a\n}")},
		{`policy: rule …: command: there is no command "…", but …`, block("policy {\nallow command stop\n}")},
		{`policy: rule …: vendor: "…" is neither the first … characters of an AIC of v01.00, nor levels of a later one`,
			block("policy {\nallow vendor 34C2\n}")},
		{`there is no condition "…"`, block("policy {\nallow a vendro 34C2\n}")},
		{"the condition … is followed by the condition …; write them in a block, each in a line of its own",
			block("policy {\nallow skill translate command start\n}")},
		{"the condition … has too few values", block("policy {\nallow vendor\n}")},
		{"policy: quota …: it limits nothing; give it calls, starts, tasks, streams or bytes", block("quota a {\n}")},
		{"policy: quota …: unfinished tasks are counted of a leader or of an agent, and not of a set",
			block("quota a {\nof set\ntasks 1\n}")},
		{`quota …: calls: "…" is no rate; write for example 50/s, 600/m or 50/s burst 100`,
			block("quota a {\ncalls 5\n}")},
		{`quota …: starts: "…" is no count of a day; write for example 1000/day`, block("quota a {\nstarts 5/h\n}")},
		{`quota …: bytes: "…" is no size of a day; write for example 1GiB/day`, block("quota a {\nbytes 5\n}")},
		{"the quota … is not the same in two aip_gateway handlers, although they count together",
			block("quota a {\ncalls 5/s\n}") + strings.Replace(block("quota a {\ncalls 6/s\n}"), ":8443", ":8444", 1)},
		{"notify: attempts is …, but must be 1 to 100", notify("attempts 101")},
		{"notify: timeout is …, but must be a second to a minute", notify("timeout 2m")},
		{`notify: allow_networks: "…" is no network, such as 10.0.0.0/8`, notify("allow_networks 10.0.0.1")},
		{`notify: certificate_for: "…": it must be a host or host:port, such as hooks.example.com`,
			notify("certificate_for https://hooks.example.com/x")},
		{`notify: certificate_for: "…": the host is neither a name nor an address`,
			notify("certificate_for *.example.com")},
		{`notify: certificate_for: "…": the port must be a number from 1 to 65535`, notify("certificate_for a.example:0")},
		{"notify: signing_key … has a placeholder without a value", key("{env.AIP_NO_SUCH_KEY}")},
		{"the signing key must begin with whsec_ (HMAC-SHA256) or whsk_ (ed25519)", key("secret")},
		{"the signing key is a public one (whpk_); give its private half (whsk_)", key("whpk_AAAA")},
		{"what follows … must be base64 of the standard alphabet, padded with =, and nothing else", key("whsk_*")},
		{"the signing key has … characters, and no key has more than 128", key(strings.Repeat("w", 129))},
		{"the secret after whsec_ has … bytes, and must have 24 to 64", key("whsec_AAAA")},
		{"the key after whsk_ has … bytes, and must have 32 (the seed) or 64 (with the public key)", key("whsk_AAAA")},
		{"the private and the public half of the key after whsk_ do not belong together",
			key("whsk_" + base64.StdEncoding.EncodeToString(make([]byte, 64)))},
		{`notify: callback: "…" is no http or https URL`, notify("callback push.example.com")},
		{"notify: callback must be a URL without credentials, query and fragment",
			notify("callback https://push.example.com/?a=b")},
		{"aun: cert and roots are needed: the gateway's own key and certificates, and the roots of its clients",
			store("aip {\naun {\n}\n}")},
		{"aun: aid: it is …, but the certificate is that of …", aunApp("aid other.aid.test") + ":8443 {\n}\n"},
		{"jwt_key needs the issuer that the keys are of, and their files: jwt_key aid.pub <file>",
			aunApp("jwt_key /etc/caddy/aun/other.pem")},
		{`aun: jwt_key: "…" is not the name of an issuer; write the issuer that the keys are of before their files: ` +
			"jwt_key aid.pub <file>", aunApp("jwt_key /a.pem /b.pem") + ":8443 {\n}\n"},
		{"aun: a key of the issuer … is that of this gateway's own AID, which signs no tokens; leave it out of jwt_key",
			aunApp("jwt_key aid.test "+public) + ":8443 {\n}\n"},
		{"callers: aun needs the option aun of the global option aip", block("callers aun")},
		{"agent: aun-assignee needs the option aun of the global option aip",
			gateway("aip_gateway aun-assignee worker.aid.pub")},
		{"callers: aun needs an aid, by which clients address the Partner", aunApp("") + block("callers aun")},
		{`there is no "…" in aip_aun`, gateway("aip_aun {\npath /x\n}")},
		{`there is no "…" in aip_callback`, gateway("aip_callback {\npath /x\n}")},
		{`"…" belongs into aip_gateway or policy: write …`, gateway("aip_identify {\nallow 1\n}")},
		{"aip_method needs at least one method or command", gateway("@m aip_method\nabort @m")},
		{`there is no "…" in aip_console`, gateway("aip_console {\nfail\n}")},
		{`'aip_console': allow has "…", but must have some of …`, gateway("aip_console {\nallow all\n}")},
		{`there is no "…" in aip_health`, gateway("aip_health {\npath /x\n}")},
		{"aip_healthz is gone; write aip_health with the option public", gateway("aip_healthz")},
		{"agent needs a dialect and a URL: agent a2a/legacy http://127.0.0.1:9101", gateway("aip_gateway {\nagent\n}")},
		{"agent: the URL cannot have the placeholder …", gateway("aip_gateway a2a http://{env.AGENT}:9101")},
		{"… cannot have the placeholder …", block("aic {env.AIP_NO_SUCH_AIC}")},
		{"… the name of a file has a placeholder without a value", gateway("aip_gateway {\nagent a2a https://x {\n" +
			"tls {\nca {env.AIP_NO_SUCH_FILE}\n}\n}\n}")},
		{`agent: the URL has … bytes, but must have no more than 400`,
			gateway("aip_gateway a2a http://127.0.0.1/" + strings.Repeat("x", 400))},
		{`completion: it is "…", but must be auto or confirm`, block("completion never")},
		{`public_url: "…" is no http or https URL`, block("public_url agent.example.com")},
		{"public_url must be a URL without credentials, query and fragment",
			block("public_url https://agent.example.com/#x")},
		{`card: signatures is "…", but must be drop, keep or refuse`, block("card {\nsignatures forge\n}")},
		{`card: acs is "…", but must be 01.00, 02.01 or 02.02`, block("card {\nacs 03.00\n}")},
		{`card: requested_validity is …, but must be 1 to 1825 days`, block("card {\nrequested_validity 2000\n}")},
		{"card: registered needs public_url, without which the URL in the ACS is that of each request",
			block("card {\nregistered acs.json\n}")},
		{"aic needs exactly one value", block("aic")},
		{"registry: it needs user, for a registry of ACPs 2.1, or oidc, for one of 2.2", store(registryOf(""))},
		{"registry: user needs a password", store(registryOf(`user a ""`))},
		{"registry: … must be https, because others on the way could read and change what is sent",
			store("aip {\nregistry http://registry.example {\nuser a b\n}\n}")},
		{"registry: user has a placeholder without a value", store(registryOf("user a {env.AIP_NO_SUCH_PASSWORD}"))},
		{"registry: ontology needs oidc, and so a registry of ACPs 2.2: …",
			store(registryOf("user a b\nontology onto.pem onto-key.pem"))},
		{"aic registered needs a registry; set registry in the global option aip",
			block("aic registered\npublic_url https://a.example")},
		{"aic registered needs public_url, at which the Partner is registered", block("aic registered")},
		{"aic registered needs a registry of ACPs 2; …",
			block("aic registered\npublic_url https://a.example\ncard {\nacs 01.00\n}")},
		{"allow needs at least one value", block("allow")},
		{"store needs a driver: jetstream, memory or pebble", store("aip {\nstore\n}")},
		{`there is no driver "…"; use jetstream, memory or pebble`, store("aip {\nstore sqlite\n}")},
		{`sync is "…", but must be state, always or never`, store("aip {\nstore pebble {\nsync sometimes\n}\n}")},
		{`"…" belongs into store pebble: write …`, store("aip {\nstore memory {\nsync always\n}\n}")},
		{`store memory takes no argument "…"`, store("aip {\nstore memory /tmp\n}")},
		{"is less than max_bytes (…), so that one task could not be kept",
			store("aip {\nstore memory {\nmax_size 1MiB\n}\n}")},
		{"max_bytes is …, but must be at least 64KiB", store("aip {\nstore pebble {\nmax_bytes 1KiB\n}\n}")},
		{"store: … is …, but must not be negative", store("aip {\nstore pebble {\nretention -1s\n}\n}")},
		{"store jetstream needs the URLs of the servers, such as nats://host", store("aip {\nstore jetstream\n}")},
		{`"…" is no URL of a NATS server; write nats://host or tls://host`, jetstream("http://a")},
		{"the URL of a server holds credentials, which logs would show; use user, token, nkey or credentials",
			jetstream("nats://me:secret@a")},
		{"the gateway logs in by one of them", jetstream("nats://a {\nuser me secret\ntoken secret\n}")},
		{"with one replica, the loss of a server is the loss of tasks; use replicas 3, " +
			"or accept that with allow_single_replica", jetstream("nats://a {\nreplicas 1\n}")},
		{"replicas is …, but must be 3 or 5", jetstream("nats://a {\nreplicas 4\n}")},
		{"shards is …, but must be 1 to 1024", jetstream("nats://a {\nshards -1\n}")},
		{"lease is …, but must be 1s to 1m0s", jetstream("nats://a {\nlease 1h\n}")},
		{`node is "…", but must be 1 to 64 letters, digits, - and _`, jetstream("nats://a {\nnode a.b\n}")},
		{`prefix is "…", but must be 1 to 32 letters, digits, - and _`, jetstream("nats://a {\nprefix a.b\n}")},
		{`traces: link is "…", but must be an http or https URL`, store("aip {\ntraces {\nlink none\n}\n}")},
		{`traces: link is "…", but must have {trace_id} where the id of the trace stands`,
			store("aip {\ntraces {\nlink https://traces.example.com\n}\n}")},
		{"drain is …, but must not be negative", store("aip {\ndrain -1s\n}")},
		{"each line of identities needs an AIC and its AID", identities("10001000011K912345E789ABCDEF2353")},
		{"… is given twice in identities", identities("a b.c\na b.d")},
		{`identities: "…" is not an AID: it must have the form name.issuer, as in alice.aid.pub`,
			identities("10001000011K912345E789ABCDEF2353 alice")},
		{"identities: … is in two lines, those of … and …",
			identities("10001000011K912345E789ABCDEF2353 a.b\n10001000011K94ZH3VDXLP4S5EB63614 A.b")},
		{"the aip option is given twice", store("aip {\n}\naip {\n}")},
		{`there is no "…" in aip`, store("aip {\nstorage pebble\n}")},
		{"no agent is given; write aip_gateway <dialect> <url>, or agent <dialect> <url> in its block",
			gateway("aip_gateway {\n}")},
		{"the agent is given twice; an aip_gateway fronts one", block("agent a2a/legacy http://127.0.0.1:9102")},
		{"agent a2a/legacy needs a URL, such as http://127.0.0.1:9101", gateway("aip_gateway a2a/legacy")},
		{`agent takes a dialect and a URL, but there is also "…"`,
			gateway("aip_gateway a2a/legacy http://127.0.0.1:9101 x")},
		{`agent: there is no dialect "…"; this gateway can front …`, gateway("aip_gateway a2a/9 http://127.0.0.1:9101")},
		{`agent: "…" is no http or https URL`, gateway("aip_gateway a2a/legacy 127.0.0.1")},
		{`agent: "…" is no URL for gRPC`, gateway("aip_gateway a2a/1.0-grpc grpc://127.0.0.1:50051")},
		{"put credentials into header_up, not into the URL, which is logged",
			gateway("aip_gateway a2a/legacy http://a:b@127.0.0.1:9101")},
		{"agent: header_up … has a placeholder without a value", agent("header_up Authorization {env.AIP_NO_SUCH_TOKEN}")},
		{"tls ca: …: there is no PEM block \"CERTIFICATE\"", agent("tls {\nca go.mod\n}")},
		{"tls ca: open …: no such file or directory", agent("tls {\nca nowhere.pem\n}")},
		{"agent: max_runs is …, but must be at least 2", agent("max_runs 1")},
		{"agent: max_runs_per_leader is …, but must not be negative; 0 means no bound", agent("max_runs_per_leader -1")},
		{"agent: check is …, but must be at least 1s", agent("check 10ms")},
		{"agent: check is for an agent of A2A or AIP, not of …",
			gateway("aip_gateway {\nagent agentapi http://127.0.0.1:9101/process {\ncheck 30s\n}\n}")},
		{"agent: expose and cancel_path are for an agent of agentapi, not of …", agent("expose status")},
		{`agent: expose is "…", but must be none, status or product`,
			gateway("aip_gateway {\nagent agentapi http://127.0.0.1:9101/process {\nexpose all\n}\n}")},
		{`agent: cancel_path: "…" is no path that begins with a slash`,
			gateway("aip_gateway {\nagent agentapi http://127.0.0.1:9101/process {\ncancel_path stop\n}\n}")},
		{"agent aun needs the AID of the agent, such as agent.aid.pub", gateway("aip_gateway aun")},
		{`agent aun takes an AID and a URL, but there is also "…"`, gateway("aip_gateway aun a.b wss://a.b/aun x")},
		{`agent: "…" is not an AID: it must have the form name.issuer, as in alice.aid.pub`, gateway("aip_gateway aun a")},
		{`agent: "…" is no wss or ws URL`, gateway("aip_gateway aun a.b https://a.b/aun")},
		{"agent: identity: it is missing; caddy aip aun-id makes the file that it needs", gateway("aip_gateway aun a.b")},
		{"agent: roots: none are given; they need a PEM file with the roots of AUN's certificates",
			gateway("aip_gateway {\nagent aun a.b {\nidentity " + own + "\n}\n}")},
		{"agent: idle_window is …, but must not be negative; 0 means its default",
			gateway("aip_gateway {\nagent aun a.b {\nidle_window -1s\n}\n}")},
		{"agent: header_up is not for an agent of aun",
			gateway("aip_gateway {\nagent aun a.b {\nidentity x.pem\nroots y.pem\nheader_up a b\n}\n}")},
		{"agent: identity: open …: no such file or directory",
			gateway("aip_gateway {\nagent aun a.b {\nidentity x.pem\nroots y.pem\n}\n}")},
		{"agent: aid, identity, roots and idle_window are for an agent of aun, not of …", agent("identity x.pem")},
		{"agent: timeout is …, but must not be negative", agent("timeout -1s")},
		{"agent: retry_for is …, but must not be negative; 0 means no retry", agent("retry_for -1s")},
		{"agent: resend after is …, but must not be negative; 0 means that the agent is asked once",
			agent("resend after -1s")},
		{"agent: resend after is …, but must be at least …, twice the lease of the store: …",
			"{\naip {\nstore jetstream nats://a\n}\n}\n" + agent("resend after 1s")},
		{"resend needs after and a duration, such as after 10s, or never or always, alone or before that",
			agent("resend 10s")},
		{"resend after needs a duration, such as 10s", agent("resend after soon")},
		{"client_cert needs a certificate and a key, both PEM files, or aip for the one that is obtained",
			agent("tls {\nclient_cert a.pem\n}")},
		{"caller sets the header field …; leave it out of header_up",
			agent("header_up aip-leader x\ncaller {\nheaders\n}")},
		{`agent: caller: "…" is no name of a header field`, agent("caller {\njwt {\nheader a:b\n}\n}")},
		{"agent: caller: jwt needs keys to sign with; set issuer in the global option aip", agent("caller {\njwt\n}")},
		{"agent: caller is not for an agent of AUN, whose connection is for all callers",
			gateway("aip_gateway {\nagent aun a.b {\ncaller {\nheaders\n}\n}\n}")},
		{"headers takes no value", agent("caller {\nheaders x\n}")},
		{"there are no keys; set issuer in the global option aip", gateway("aip_jwks")},
		{"issuer: it has no key to sign with", store("aip {\nissuer x\n}")},
		{"issuer: one key is given twice", store("aip {\nissuer x {\nkeys " + signing + " " + signing + "\n}\n}")},
		{"issuer: keys: open …: no such file or directory", store("aip {\nissuer x {\nkeys nowhere.pem\n}\n}")},
		{"issuer: keys: …: there is no private key in PEM; …", store("aip {\nissuer x {\nkeys " + public + "\n}\n}")},
		{"tls: verify … needs the AIC of the server", secure("verify both")},
		{"tls: verify name looks at no AIC: leave the AIC out, or use verify both", secure("aic " + aic + "\nverify name")},
		{`tls: verify is "…"; use aic, name or both`, secure("verify host")},
		{`tls: "…" is not the AIC of a server: …`, secure("aic x")},
		{"agent: aic and verify in tls need an https URL", agent("tls {\nverify name\n}")},
		{"agent: aic and verify in tls are not for an agent of AUN, whose identity is its AID",
			gateway("aip_gateway {\nagent aun a.b {\ntls {\nverify name\n}\n}\n}")},
		{`group: a broker shows its AIC only with TLS; write amqps:// before "…" in allow_brokers`,
			block("aic " + aic + "\ngroup {\nallow_brokers mq.example.com\ntls {\naic " + aic + "\n}\n}")},
		{"tls client_cert: …", agent("tls {\nclient_cert go.mod go.mod\n}")},
		{"header_up needs a name and a value", agent("header_up Authorization Bearer x")},
		{`the header field "…" has a name or a value that HTTP does not allow`, agent(`header_up "A B" x`)},
		{`callers: there is no dialect "…"; this gateway can serve …`, block("callers aip/9")},
		{`aic: "…": the check digits of the AIC are …, and … would be right; make one with: caddy aip aic make`,
			block("aic 10001000011K912345E789ABCDEF2354")},
		{`base_path: "…" does not begin with a slash`, block("base_path x")},
		{`the identity mode is "…", and must be required, optional or off`, block("identity maybe")},
		{"limits: memory is … bytes, but must be at least …",
			block("limits {\nmemory 16MiB\nbody 15MiB\n}")},
		{"write_timeout: … is too short; use a second or more", block("write_timeout 10ms")},
		{"heartbeat: … is too short; use a second or more", block("heartbeat 10ms")},
		{`two aip_gateway handlers answer under "…" but front different agents`,
			gateway("handle_path /a* {\naip_gateway a2a/legacy http://127.0.0.1:1 {\naic 10001000011K912345E789ABCDEF2353\n}" +
				"\n}\nhandle_path /b* {\naip_gateway a2a/legacy http://127.0.0.1:2 {\naic 10001000011K912345E789ABCDEF2353\n}\n}")},
		{"two aip_gateway handlers have the AID … but are different Partners",
			gateway("handle_path /a* {\naip_gateway a2a/legacy http://127.0.0.1:1 {\naid a.b\n}\n}\n" +
				"handle_path /b* {\naip_gateway a2a/legacy http://127.0.0.1:2 {\naid A.b\n}\n}")},
		{`there is no "…" in aip_gateway`, block("idenity off")},
		{"identity is given twice in aip_gateway", block("identity off\nidentity off")},
		{`response is "…", but must be a duration, such as 30s or 24h`, block("timeouts {\nresponse 30\n}")},
		{"timeouts: … is …, but must not be negative", block("timeouts {\nresponse -1s\n}")},
		{`there is no "…" in timeouts`, block("timeouts {\nanswer 1s\n}")},
		{`body is "…", but must be a size, such as 64MiB`, block("limits {\nbody big\n}")},
		{`streams is "…", but must be a whole number`, block("limits {\nstreams many\n}")},
		{"limits: … is …, but must not be negative", block("limits {\nstreams -1\n}")},
		{`there is no "…" in limits`, block("limits {\nheight 1\n}")},
		{"group: the Partner needs an aic, which is its name in groups; set aic", block("group {\nallow_brokers a.b\n}")},
		{"group: Leaders invite by AIP; add aip or aip/2 to callers",
			block("aic 10001000011K912345E789ABCDEF2353\ncallers a2a\ngroup {\nallow_brokers a.b\n}")},
		{"group: no broker is allowed; name the brokers of your Leaders in allow_brokers", group("")},
		{`group: allow_brokers: "…": the scheme must be amqp or amqps`, broker("https://mq.example.com")},
		{`group: allow_brokers: "…": the port must be a number from 1 to 65535`, broker("mq.example.com:99999")},
		{`group: allow_brokers: "…": an IPv6 address stands in brackets`, broker("fd00::5")},
		{`group: allow_brokers: "…": a star stands only before a dot and a domain, as in *.example.com`, broker("*")},
		{`group: allow_brokers: "…": the names below a domain are written with a star, as in *.example.com`,
			broker(".example.com")},
		{`group: allow_brokers: "…": it must be a host, host:port or *.domain`, broker("mq.*.com")},
		{`group: inbox: "…": it must be amqps://<host>/<virtual host>`, group("inbox amqp://mq.example.com/acps")},
		{`group: inbox: "…": it has more than a host, a port and a virtual host; the Partner logs in by its certificate`,
			group("inbox amqps://a:b@mq.example.com/acps")},
		{`group: inbox: "…": the port must be a number from 1 to 65535`, group("inbox amqps://mq.example.com:99999/acps")},
		{`group: inbox: "…": the virtual host must be one name; write %2F for a slash in it`,
			group("inbox amqps://mq.example.com/a/b")},
		{"group: inbox: the Partner logs in there by a certificate; set client_cert in tls",
			group("inbox amqps://mq.example.com/acps")},
		{"group: inbox: invitations there are of AIP 2; add aip/2 to callers",
			group("inbox amqps://mq.example.com/acps\ntls {\nclient_cert a b\n}", "callers aip")},
		{`group: allow_networks: "…" is no network, such as 10.0.0.0/8`, broker("a.b\nallow_networks 10.0.0.1")},
		{`group: allow_exchanges: "…" is no AIC of a Leader: …`, broker("a.b\nallow_exchanges leader x")},
		{`group: allow_exchanges: "…" is not the name of an exchange; a star stands only at the end`,
			broker("a.b\nallow_exchanges 10001000011K94ZH3VDXLP4S5EB63614 *x")},
		{"allow_exchanges needs the AIC of a Leader, and at least one exchange",
			broker("a.b\nallow_exchanges 10001000011K94ZH3VDXLP4S5EB63614")},
		{"group: tls ca: open …: no such file or directory", broker("a.b\ntls {\nca nowhere.pem\n}")},
		{"group: token_key has a placeholder without a value", broker("a.b\ntoken_key {env.AIP_NO_SUCH_KEY}")},
		{"group: token_key is neither hexadecimal nor base64; make one with: openssl rand -hex 32",
			broker("a.b\ntoken_key *")},
		{"group: token_key has … bytes, but must have 32; make one with: openssl rand -hex 32",
			broker("a.b\ntoken_key 0a0b")},
		{"group: max_groups is …, but must be 1 to 100000", broker("a.b\nmax_groups -1")},
		{`there is no "…" in group`, group("brokers a.b")},
		{"aip_sample_agent takes no settings", gateway("aip_sample_agent x")},
	}
	for _, it := range provoke {
		pattern := regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(it.message), "…", ".+"))
		err := validate(string(caddyfile.Format([]byte(it.config))))
		if err == nil || !pattern.MatchString(err.Error()) {
			t.Errorf("Caddy does not say %q, but: %v", it.message, err)
		}
	}
}

// registryOf returns an option aip with a registry.
func registryOf(settings string) string {
	return "aip {\nregistry https://registry.example {\n" + settings + "\n}\n}"
}
