// SPDX-License-Identifier: Apache-2.0

package acps

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/acps/registry"
	"github.com/aip-gateway/aip-gateway/acps/registry/registrytest"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf/conftest"
	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/identity"
)

// readRegistry reads the option as in a Caddyfile.
func readRegistry(text string) (r *Registry, err error) {
	p := conftest.Parser(text)
	RegistryOption(p, &r)()
	return r, p.Failed()
}

// TestRegistry: what the option reads.
func TestRegistry(t *testing.T) {
	const url = "https://a.example"
	conftest.Reads(t, map[string]*Registry{
		"registry " + url: {URL: url},
		"registry " + url + " {\nuser me hunter2\nca a.pem b.pem\npoll 5m\n}": {URL: url, User: "me", Password: "hunter2",
			CA: []string{"a.pem", "b.pem"}, Poll: caddy.Duration(5 * time.Minute)},
		"registry " + url + " {\noidc https://b.example\nontology c.pem k.pem\n}": {URL: url, Issuer: "https://b.example",
			Ontology: &Ontology{Cert: "c.pem", Key: "k.pem"}},
		"registry " + url + " {\noidc https://b.example me\nontology c.pem k.pem https://c.example\n}": {URL: url,
			Issuer: "https://b.example", ClientID: "me",
			Ontology: &Ontology{Cert: "c.pem", Key: "k.pem", URL: "https://c.example"}},
		"registry " + url + " {\noidc https://b.example me hunter2\n}": {URL: url, Issuer: "https://b.example",
			ClientID: "me", ClientSecret: "hunter2"},
	}, readRegistry)
}

// TestRegistryMistakes: what is said about each mistake in a Caddyfile.
func TestRegistryMistakes(t *testing.T) {
	with := func(options string) string { return "registry https://a.example {\n" + options + "\n}" }
	conftest.Refuses(t, map[string]string{
		"registry": "registry needs exactly one value, at Testfile:1",
		"registry https://a.example https://b.net": "registry needs exactly one value, at Testfile:1",
		with("user me"):        "user needs a name and a password, at Testfile:2",
		with("oidc"):           "oidc is written as: oidc <issuer> [<client_id> [<client_secret>]], at Testfile:2",
		with("oidc a b c d"):   "oidc is written as: oidc <issuer> [<client_id> [<client_secret>]], at Testfile:2",
		with("ontology c.pem"): "ontology is written as: ontology <cert> <key> [<url>], at Testfile:2",
		with("ontology c.pem k.pem https://b.example now"): "ontology is written as: ontology <cert> <key> [<url>], at " +
			"Testfile:2",
		with("poll often"): `poll is "often", but must be a duration, such as 30s or 24h, at Testfile:2`,
		with("users a b"):  `there is no "users" in registry; did you mean "user"?, at Testfile:2`,
	}, func(text string) error {
		_, err := readRegistry(text)
		return err
	})
}

// TestAccountMistakes: what is said about settings that contradict each other or are of no use. None of it holds a
// secret.
func TestAccountMistakes(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.pem")
	const me = `"user":"me","password":"hunter2"`
	mistakes := map[string]string{
		``:                     "registry: it needs user, for a registry of ACPs 2.1, or oidc, for one of 2.2",
		`"password":"hunter2"`: "registry: it needs user, for a registry of ACPs 2.1, or oidc, for one of 2.2",
		me + `,"issuer":"https://b.example"`: "registry: use user, for a registry of ACPs 2.1, " +
			"or oidc, for one of 2.2, not both",
		`"user":"me"`: "registry: user needs a password",
		`"issuer":"https://b.example","password":"hunter2"`: "registry: password belongs to user, which is not set",
		me + `,"client_id":"you"`: "registry: client_id and client_secret belong to issuer, " +
			"which is not set",
		me + `,"client_secret":"hunter3"`: "registry: client_id and client_secret belong to " +
			"issuer, which is not set",
		me + `,"ontology":{"cert":"c","key":"k"}`: "registry: " + errNoEntities.Error(),
		me + `,"poll":"999ms"`:                    "registry: poll is 999ms, but must be 1s or more",
		me + `,"poll":"-1m"`:                      "registry: poll is -1m0s, but must be 1s or more",
		me + `,"ca":["` + none + `"]`: "registry: ca: " + none + ": it cannot be read (open " +
			none + ": no such file or directory); correct its path or its permissions",
		`"user":"me","password":"hunter2{env.NO_SUCH_SECRET}"`: "registry: user has a placeholder without a value: " +
			"{env.NO_SUCH_SECRET}",
		`"issuer":"https://b.example","client_secret":"hunter2{env.NO_SUCH_SECRET}"`: "registry: oidc has a placeholder " +
			"without a value: {env.NO_SUCH_SECRET}",
		`"issuer":"http://b.example"`: `registry: oidc: "http://b.example" must be https, because others on the way ` +
			"could read and change what is sent",
		me + `,"url":"http://a.example"`: `registry: "http://a.example" must be https, because ` +
			"others on the way could read and change what is sent",
		me + `,"url":"https://{env.NO_SUCH_HOST}"`: "registry: its URL has a placeholder " +
			"without a value: {env.NO_SUCH_HOST}",
	}
	conftest.Refuses(t, mistakes, func(text string) error {
		r := &Registry{URL: "https://a.example"}
		if err := json.Unmarshal([]byte("{"+text+"}"), r); err != nil {
			t.Fatal(err)
		}
		_, err := r.Account(nil)
		return err
	})
	var no *Registry
	if a, err := no.Account(nil); a != nil || err != nil {
		t.Errorf("without the option there are %v, %v", a, err)
	}
}

// TestDefaults: what is not set.
func TestDefaults(t *testing.T) {
	r := &Registry{URL: "https://a.example", Issuer: "https://b.example"}
	if _, err := r.Account(nil); err != nil {
		t.Fatal(err)
	}
	want := &Registry{URL: "https://a.example", Issuer: "https://b.example", ClientID: "registry-cli",
		Poll: caddy.Duration(time.Minute)}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// account returns the account at a registry, whose sessions are kept in a folder.
func account(t *testing.T, r *Registry) *registry.Account {
	t.Helper()
	a, err := r.Account(&certmagic.FileStorage{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestPassword: the password is read at each login, from a file that may have changed, without the end of its line.
func TestPassword(t *testing.T) {
	at, file := registrytest.New(t), filepath.Join(t.TempDir(), "password")
	write := func(password string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(password+"\r\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("hunter2")
	a := account(t, &Registry{URL: at.URL, User: registrytest.User, Password: "{file." + file + "}"})
	if _, err := a.EAB(t.Context(), aicV2); !registry.Is(err, registry.Unauthorized) || at.LoggedIn() != 0 {
		t.Errorf("with a wrong password: %v", err)
	}
	write(registrytest.Password)
	if _, err := a.EAB(t.Context(), aicV2); registry.Is(err, registry.Unauthorized) || at.LoggedIn() != 1 {
		t.Errorf("with the right password: %v, %d logins", err, at.LoggedIn())
	}
	t.Setenv("REGISTRY_PASSWORD", registrytest.Password+"\r\n")
	a = account(t, &Registry{URL: at.URL, User: registrytest.User, Password: "{env.REGISTRY_PASSWORD}"})
	if _, err := a.EAB(t.Context(), aicV2); registry.Is(err, registry.Unauthorized) || at.LoggedIn() != 2 {
		t.Errorf("with the password in the environment: %v, %d logins", err, at.LoggedIn())
	}
	at.LogInElsewhere()
	if err := os.Unsetenv("REGISTRY_PASSWORD"); err != nil {
		t.Fatal(err)
	}
	const want = "registry: a secret has a placeholder without a value: {env.REGISTRY_PASSWORD}"
	if _, err := a.EAB(t.Context(), aicV2); err == nil || err.Error() != want {
		t.Errorf("without a password any more: %v, want %s", err, want)
	}
}

// TestOIDC: with an issuer, a person logs in by the client in the settings.
func TestOIDC(t *testing.T) {
	at := registrytest.NewOIDC(t)
	asking := registry.Asking(t.Context())
	for client, want := range map[string]string{"": "ABCD-EFGH", "other": "refused"} {
		_, err := account(t, &Registry{URL: at.URL, Issuer: at.Issuer(), ClientID: client}).EAB(asking, aicV2)
		got := "refused"
		if asked, ok := errors.AsType[*registry.LoginError](err); ok {
			got = asked.Code
		}
		if got != want {
			t.Errorf("the client %q has a person read %s, %v, want %s", client, got, err, want)
		}
	}
}

// ontology makes a client certificate with the AIC of an instance.
func ontology(t *testing.T, instance string) *devpki.PKI {
	t.Helper()
	aic, err := identity.MakeV2(identity.FieldsV2{Instance: instance}, devpki.Salt)
	if err != nil {
		t.Fatal(err)
	}
	return devpkitest.Make(t, devpki.Options{Leader: aic})
}

// TestOntology: the ontology is the AIC in the certificate, and its client shows that to the registry.
func TestOntology(t *testing.T) {
	made, shown := ontology(t, "000000"), ""
	url := serve(t, made, func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) > 0 {
			named, err := identity.FromCertificate(r.TLS.PeerCertificates[0])
			if err != nil {
				t.Error(err)
			}
			shown = string(named)
		}
		_, _ = io.WriteString(w, "{}")
	})
	for _, tc := range []struct {
		registry Registry
		place    string
	}{
		{Registry{URL: url}, ""},
		{Registry{URL: "https://a.example"}, url + "/"},
	} {
		tc.registry.Issuer, tc.registry.CA = "https://b.example", []string{made.CA.Cert}
		tc.registry.Ontology = &Ontology{Cert: made.Leader.Cert, Key: made.Leader.Key, URL: tc.place}
		if _, err := tc.registry.Account(nil); err != nil {
			t.Fatal(err)
		}
		aic, at, err := tc.registry.Ontology.Open(&tc.registry)
		if err != nil {
			t.Fatal(err)
		}
		shown = ""
		_, err = at.ACS(t.Context(), aicV2)
		if want := string(made.Leader.AIC); err != nil || at.URL() != url || aic != want || shown != want {
			t.Errorf("%+v at %s: the ontology %s shows %q, %v", tc.registry, at.URL(), aic, shown, err)
		}
	}
}

// TestOntologyMistakes: what is said about a certificate, or a place, of no use, when the account is made.
func TestOntologyMistakes(t *testing.T) {
	made, instance := ontology(t, "0000"), ontology(t, "00A0")
	none := filepath.Join(t.TempDir(), "none.pem")
	for _, tc := range []struct {
		ontology Ontology
		want     string
	}{
		{Ontology{Cert: none, Key: none}, "registry: ontology: tls client_cert: open " + none +
			": no such file or directory"},
		{Ontology{Cert: made.CA.Cert, Key: made.CA.Key}, "registry: ontology: " + made.CA.Cert + ": "},
		{Ontology{Cert: instance.Leader.Cert, Key: instance.Leader.Key}, "registry: ontology: the AIC " +
			string(instance.Leader.AIC) + " in " + instance.Leader.Cert + " is of no ontology, whose instance is all zeros"},
		{Ontology{Cert: made.Leader.Cert, Key: made.Leader.Key, URL: "http://a.example"}, "registry: ontology: " +
			`"http://a.example" must be https`},
		{Ontology{Cert: made.Leader.Cert, Key: made.Leader.Key, URL: "https://{env.NO_SUCH_HOST}"}, "registry: ontology: " +
			"its URL has a placeholder without a value: {env.NO_SUCH_HOST}"},
	} {
		r := &Registry{URL: "https://a.example", Issuer: "https://b.example", Ontology: &tc.ontology}
		if _, err := r.Account(nil); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %s", tc.ontology, err, tc.want)
		}
	}
}
