// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/acps/registry/registrytest"
	"github.com/aip-gateway/aip-gateway/internal/legacyagent"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/tidwall/gjson"
)

// registering is a gateway whose Partner a registry registers.
type registering struct {
	*site.Site
	registry *registrytest.Registry
	agent    string
}

func newRegistering(t *testing.T, r *registrytest.Registry) *registering {
	sample := legacyagent.New(legacyagent.Options{})
	agent := httptest.NewServer(sample)
	t.Cleanup(func() {
		agent.Close()
		sample.Close()
	})
	s := site.New(t)
	secret := s.InDir("password")
	if err := os.WriteFile(secret, []byte(registrytest.Password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &registering{Site: s, registry: r, agent: agent.URL}
}

// settings returns a configuration with how the user logs in, and with more in the card.
func (r *registering) settings(login, card string) site.Config {
	return site.Config{
		Store: "store pebble " + r.InDir("store") + "\n\t\tregistry " + r.registry.URL + " {\n\t\t\t" + login +
			"\n\t\t\tpoll 1s\n\t\t}",
		Handle: "aip_gateway a2a/legacy " + r.agent + " {\n\t\taic registered\n\t\tpublic_url " + r.URL() +
			"/{AIC}\n\t\tcard {\n\t\t\torganization Example\n\t\t\t" + card + "\n\t\t}\n\t}",
	}
}

// examined returns what doctor says about the registration, without asking the registry.
func (r *registering) examined(t *testing.T, c site.Config) (said string) {
	t.Helper()
	_, found := r.Doctor(c)
	for _, f := range found {
		if strings.Contains(f, "registration") {
			said += f
		}
	}
	return said
}

func (r *registering) byPassword() string {
	return fmt.Sprintf("user %s {file.%s}", registrytest.User, r.InDir("password"))
}

func (r *registering) acs(args ...string) (int, string, string) {
	return r.Caddy(append(append([]string{"aip", "acs"}, args...), "--address", fmt.Sprintf("127.0.0.1:%d", r.Admin))...)
}

// served returns a member of the ACS that the Partner serves.
func (r *registering) served(t *testing.T, member string) string {
	t.Helper()
	_, body := site.LeaderOf(t, r.URL()).Exchange(http.MethodGet, "/.well-known/acs.json", nil)
	return gjson.GetBytes(body, member).Str
}

// drafted returns the name and the version of the one agent at the registry.
func (r *registering) drafted(t *testing.T) (name, version string) {
	t.Helper()
	return r.served(t, "name"), r.served(t, "version")
}

// submitted submits the agent to the registry from a gateway with a configuration, which is killed then. It returns the
// agent's name and version there.
func (r *registering) submitted(t *testing.T, c site.Config) (name, version string) {
	t.Helper()
	r.Start(c)
	if status, out, errs := r.acs("register", "--no-wait"); status != 0 {
		t.Fatalf("register: %d %s %s", status, out, errs)
	}
	name, version = r.drafted(t)
	r.Kill()
	return name, version
}

// TestRegistration goes from nothing to an AIC in use, over a lost answer, a kill and a rejection, with one draft, and
// then to a new version.
func TestRegistration(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t)
	r := newRegistering(t, registry)
	c := r.settings(r.byPassword(), "")
	r.Start(c)
	r.WaitFor(t, "the Partner is not registered, and has no AIC; run caddy aip acs register")
	if status, out, errs := r.acs("status"); status != 0 || !strings.Contains(out, "nothing is registered") {
		t.Errorf("status: %d %s %s", status, out, errs)
	}
	name, version := r.drafted(t)
	if said := r.examined(t, c); !strings.Contains(said, "the Partner is not registered") {
		t.Errorf("doctor: %s", said)
	}

	lost := true
	registry.Fail(func(method, path string) registrytest.Fault {
		if method == http.MethodPost && path == "/api/v1/agent/client" && lost {
			lost = false
			return registrytest.After
		}
		return registrytest.None
	})
	status, out, errs := r.acs("register", "--no-wait")
	if status != 1 || !strings.Contains(out, "the same command goes on where it was") {
		t.Errorf("with a lost answer: %d %s %s", status, out, errs)
	}
	r.Kill()
	r.Start(c)
	if status, out, errs = r.acs("register", "--no-wait"); status != 0 || !strings.Contains(out, "is pending") {
		t.Fatalf("register: %d %s %s", status, out, errs)
	}
	if got := fmt.Sprint(registry.Agents(name)); got != "["+version+" PENDING]" {
		t.Errorf("the registry has %s", got)
	}
	if said := r.examined(t, c); !strings.Contains(said, "waits for a person of the registry since 20") {
		t.Errorf("doctor: %s", said)
	}
	registry.Process(name, version, false, "name the department")
	r.WaitFor(t, "the registry has rejected the registration")
	if status, out, _ = r.acs("register"); status != 1 || !strings.Contains(out, "name the department") {
		t.Errorf("after the rejection: %d %s", status, out)
	}
	c = r.settings(r.byPassword(), "department Travel")
	if refused := r.Reload(c); refused != "" {
		t.Fatal(refused)
	}

	// It waits for the decision, and loads the configuration again.
	done := make(chan string, 1)
	go func() {
		status, out, errs := r.acs("register")
		done <- fmt.Sprint(status, " ", out, errs)
	}()
	site.Eventually(t, "the submission", func() bool {
		return fmt.Sprint(registry.Agents(name)) == "["+version+" PENDING]"
	})
	aic := registry.Process(name, version, true, "ok")
	select {
	case got := <-done:
		if !strings.HasPrefix(got, "0 ") || !strings.Contains(got, "is approved") || strings.Contains(got, "used") {
			t.Fatalf("register: %s", got)
		}
	case <-time.After(time.Minute):
		t.Fatal("register still waits")
	}
	if got := r.served(t, "aic"); got != aic {
		t.Errorf("the Partner has the AIC %q, want %s", got, aic)
	}
	if got := r.served(t, "endPoints.0.url"); !strings.HasSuffix(got, "/"+aic+"/rpc") {
		t.Errorf("the Partner is at %q", got)
	}
	r.Kill() // the AIC is kept
	r.Start(c)
	if got := r.served(t, "aic"); got != aic {
		t.Errorf("after a crash the Partner has the AIC %q, want %s", got, aic)
	}
	if said := r.examined(t, c); !strings.Contains(said, "the AIC is "+aic) {
		t.Errorf("doctor: %s", said)
	}
	if strings.Contains(r.Out.String(), "the ACS that is served is not the one that is registered") {
		t.Errorf("it warns of the same ACS: %s", r.Out.String())
	}
	r.newVersion(t, aic, name, version)
	if n := registry.LoggedIn(); n != 1 {
		t.Errorf("there were %d logins", n)
	}
	if strings.Contains(r.Out.String(), registrytest.Password) || strings.Contains(r.Out.String(), "token-1") {
		t.Error("a secret is in the log")
	}
}

// newVersion changes the Partner, which a registry refuses under its version, and registers it under another one.
func (r *registering) newVersion(t *testing.T, aic, name, version string) {
	t.Helper()
	if refused := r.Reload(r.settings(r.byPassword(), "department Sales")); refused != "" {
		t.Fatal(refused)
	}
	r.WaitFor(t, "the ACS that is served is not the one that is registered")
	if status, out, _ := r.acs("register"); status != 1 || !strings.Contains(out, "or raise the version") {
		t.Errorf("the same version with another content: %d %s", status, out)
	}
	if refused := r.Reload(r.settings(r.byPassword(), "department Sales\n\t\t\tversion 2.0")); refused != "" {
		t.Fatal(refused)
	}
	status, out, _ := r.acs("register")
	if status != 1 || !strings.Contains(out, "if that is meant, say --new-version") ||
		!strings.Contains(out, "the Partner's URL, in which it stands") {
		t.Errorf("a new version: %d %s", status, out)
	}
	if status, out, _ = r.acs("register", "--new-version", "--no-wait"); status != 0 ||
		!strings.Contains(out, "On the AIC "+aic+" depend:") {
		t.Errorf("a new version: %d %s", status, out)
	}
	next := r.registry.Process(name, "2.0", true, "ok")
	r.WaitFor(t, "the registry has assigned an AIC: get certificates for it, and run caddy reload --force")
	if got := r.served(t, "aic"); got != aic {
		t.Errorf("the Partner has the AIC %q already", got)
	}
	if status, out, _ = r.acs("register"); status != 0 || !strings.Contains(out, "former    "+aic) {
		t.Errorf("after the approval: %d %s", status, out)
	}
	if got := r.served(t, "aic"); got != next {
		t.Errorf("the Partner has the AIC %q, want %s", got, next)
	}
	if status, out, errs := r.acs("withdraw", "--delete", "--aic", aic); status != 0 || strings.Contains(out, "former") {
		t.Errorf("withdraw the former version: %d %s %s", status, out, errs)
	}
	if got, want := fmt.Sprint(r.registry.Agents(name)), "[2.0 APPROVED]"; got != want {
		t.Errorf("the registry has %s, want %s", got, want)
	}
	if status, out, errs := r.acs("withdraw", "--delete", "--aic", next); status != 0 ||
		!strings.Contains(out, "is deleted") {
		t.Errorf("withdraw: %d %s %s", status, out, errs)
	}
	if got := r.registry.Agents(name); len(got) != 0 {
		t.Errorf("the registry has %s", got)
	}
}

// TestRegistrationByOpenID: a person logs in at the provider of a registry of ACPs 2.2, once, and the session outlives
// the process.
func TestRegistrationByOpenID(t *testing.T) {
	t.Parallel()
	registry := registrytest.NewOIDC(t)
	r := newRegistering(t, registry)
	c := r.settings(r.byPassword(), "")
	r.Start(c)
	if status, out, _ := r.acs("register"); status != 1 || !strings.Contains(out, "use oidc in registry") {
		t.Errorf("by a password: %d %s", status, out)
	}
	c = r.settings("oidc "+registry.Issuer()+" "+registrytest.ClientID, "")
	if refused := r.Reload(c); refused != "" {
		t.Fatal(refused)
	}
	done := make(chan string, 1)
	go func() {
		status, out, errs := r.acs("register", "--no-wait")
		done <- fmt.Sprint(status, " ", out, errs)
	}()
	site.Eventually(t, "the login is asked for", func() bool { return registry.Asked() == 1 })
	registry.LogIn(true)
	got := <-done
	if !strings.HasPrefix(got, "0 Open "+registry.Issuer()+"/open?user_code=ABCD-EFGH in a browser") ||
		!strings.Contains(got, "is pending") {
		t.Fatalf("register: %s", got)
	}
	r.Kill()
	r.Start(c)
	name, version := r.drafted(t)
	registry.Process(name, version, true, "ok")
	r.WaitFor(t, "the registry has assigned an AIC")
	if registry.Asked() != 1 {
		t.Errorf("a person was asked to log in %d times", registry.Asked())
	}
}

// TestRegistrationAsEntity registers a Partner at a registry of ACPs 2.2 as an entity of an ontology, whose certificate
// it shows there. No person decides, and the AIC is used at once. At a registry of ACPs 2.1 the configuration is
// refused.
func TestRegistrationAsEntity(t *testing.T) {
	t.Parallel()
	registry := registrytest.NewOIDC(t)
	registry.KeepNames()
	r := newRegistering(t, registry)
	root := newRoot(t, "root")
	pair := root.leader(registrytest.Ontology)
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	site.NoError(t, err)
	site.NoError(t, os.WriteFile(r.InDir("onto.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: pair.Leaf.Raw}), 0o600))
	site.NoError(t, os.WriteFile(r.InDir("onto-key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		0o600))
	var shown atomic.Pointer[string]
	entities := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		shown.Store(&q.TLS.PeerCertificates[0].Subject.CommonName)
		registry.ServeHTTP(w, q)
	}))
	entities.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13}
	entities.StartTLS()
	t.Cleanup(entities.Close)
	site.NoError(t, os.WriteFile(r.InDir("ca.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: entities.Certificate().Raw}), 0o600))

	ontology := fmt.Sprintf("\n\t\t\tca %s\n\t\t\tontology %s %s %s", r.InDir("ca.pem"), r.InDir("onto.pem"),
		r.InDir("onto-key.pem"), entities.URL)
	settings := func(login string) site.Config {
		c := r.settings(login, "")
		c.Handle = strings.Replace(c.Handle, "/{AIC}", "", 1)
		return c
	}
	c := settings("oidc " + registry.Issuer() + " " + registrytest.ClientID + ontology)
	r.Start(c)
	if refused := r.Reload(settings(r.byPassword() + ontology)); !strings.Contains(refused, "ACPs 2.1 keeps no names") {
		t.Errorf("at a registry of ACPs 2.1: %s", refused)
	}
	done := make(chan string, 1)
	go func() {
		status, out, errs := r.acs("register")
		done <- fmt.Sprint(status, " ", out, errs)
	}()
	site.Eventually(t, "the login is asked for", func() bool { return registry.Asked() == 1 })
	registry.LogIn(true)
	got, all := <-done, registry.Entities()
	if len(all) != 1 || !strings.HasPrefix(got, "0 ") || !strings.Contains(got, "ontology  "+registrytest.Ontology) {
		t.Fatalf("register: %s; there are the entities %v", got, all)
	}
	if cn := shown.Load(); cn == nil || *cn != registrytest.Ontology {
		t.Errorf("the registry was shown the certificate of %v", cn)
	}
	if aic := r.served(t, "aic"); aic != all[0] {
		t.Errorf("the Partner has the AIC %q, want %s", aic, all[0])
	}
	if status, out, errs := r.acs("register"); status != 0 || len(registry.Entities()) != 1 {
		t.Errorf("register again: %d %s %s", status, out, errs)
	}
}

// TestAssignedAICIsUsed: a Partner that has one block in the Caddyfile, which also has it take part in groups by the
// certificate that is obtained for it, answers under its AIC after the registry has
// approved it, over a restart meanwhile and without another hand: the gateway has its configuration loaded again, once.
func TestAssignedAICIsUsed(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t)
	r := newRegistering(t, registry)
	c := r.settings(r.byPassword(), "")
	c.Options = "persist_config off"
	c.Store += "\n\t\tcertificates http://127.0.0.1:1/acps-atr-v2/acme/directory"
	c.Handle = strings.Replace(c.Handle, "card {", "callers aip aip/2\n\t\tgroup {\n\t\t\tallow_brokers localhost\n\t\t\t"+
		"tls {\n\t\t\t\tclient_cert aip\n\t\t\t}\n\t\t}\n\t\tcard {", 1)
	name, version := r.submitted(t, c)
	r.Start(c)
	r.WaitFor(t, "the registration waits for a person of the registry")
	aic := registry.Process(name, version, true, "ok")
	r.WaitFor(t, "the registry has assigned an AIC: the configuration is loaded again.*"+aic)
	site.Eventually(t, "the Partner has its AIC", func() bool { return r.served(t, "aic") == aic })
	if got, err := site.LeaderOf(t, r.URL()).Again(site.StartCall("one", "hello")); err != nil {
		t.Errorf("a start: %v", site.Explain(err))
	} else if got.Status.State != task.AwaitingCompletion {
		t.Errorf("a start brings %s", got.Status.State)
	}
	if queues := r.served(t, "capabilities.messageQueue.0"); queues == "" ||
		strings.Contains(r.Out.String(), "is not the one that is registered") {
		t.Errorf("its ACS names the brokers %q, or is not the one that is registered", queues)
	}
	if n := len(r.Logged(t, "the Partner is ready")); n != 2 {
		t.Errorf("the configuration was loaded %d times", n)
	}
}

// TestAssignedAICWithoutAdmin: without the admin API of Caddy, the AIC is used from the next start on.
func TestAssignedAICWithoutAdmin(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t)
	r := newRegistering(t, registry)
	c := r.settings(r.byPassword(), "")
	name, version := r.submitted(t, c)
	path := r.Write(c)
	text, err := os.ReadFile(path)
	site.NoError(t, err)
	off := strings.Replace(string(text), fmt.Sprintf("admin 127.0.0.1:%d", r.Admin), "admin off", 1)
	site.NoError(t, os.WriteFile(path, []byte(off), 0o600))
	r.Run(path)
	r.WaitFor(t, "the registration waits for a person of the registry")
	aic := registry.Process(name, version, true, "ok")
	r.WaitFor(t, "the registry has assigned an AIC, which is used when Caddy is started again.*"+aic)
	r.Kill()
	r.Run(path)
	if got := r.served(t, "aic"); got != aic {
		t.Errorf("after a restart the Partner has the AIC %q, want %s", got, aic)
	}
}
