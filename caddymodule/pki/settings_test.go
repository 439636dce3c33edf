// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf/conftest"
	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/trust/revocation"
)

// readRevocation reads the block revocation as in a Caddyfile.
func readRevocation(options string) (*Revocation, error) {
	p := conftest.Parser("revocation {\n" + options + "\n}")
	var r *Revocation
	RevocationOption(p, &r)()
	return r, p.Failed()
}

// TestRevocationMistakes: what is said about each mistake, as the Caddyfile is read or the sources are made. A
// placeholder without a value is one: ocsp query without a URL asks another responder.
func TestRevocationMistakes(t *testing.T) {
	process := NewProcess(node.NewProcess(node.Host{}), silent)
	none := filepath.Join(t.TempDir(), "none.pem")
	conftest.Refuses(t, map[string]string{
		"ocsp": "ocsp is written as: ocsp query, with the URL of a responder behind it or none; or: ocsp staple, at " +
			"Testfile:2",
		"ocsp ask": "ocsp is written as: ocsp query, with the URL of a responder behind it or none; or: ocsp staple, at " +
			"Testfile:2",
		"unknown accept": "unknown is written as: unknown refuse, at Testfile:2",
		"rate 5/h":       `rate is "5/h", but must be a number a minute, such as 50/m, at Testfile:2`,
		"":               "revocation: it has no source",
		"crl a.pem a.pem": "revocation: the source " + filepath.Join(workingDirectory(t), "a.pem") +
			" is there twice",
		"ocsp staple\nrate -1/m":             "revocation: the rate must be 1 to 100000 a minute",
		"ocsp staple\ngrace -1s":             "revocation: the times for which an answer counts must not be negative",
		"ocsp query {env.NO_SUCH_RESPONDER}": "revocation: ocsp has a placeholder without a value: {env.NO_SUCH_RESPONDER}",
		"crl {env.NO_SUCH_DIR}/a.crl":        "revocation: crl has a placeholder without a value: {env.NO_SUCH_DIR}",
		"acps {env.NO_SUCH_CA}":              "revocation: acps has a placeholder without a value: {env.NO_SUCH_CA}",
		"acps https://me:hunter2@ca.example": "revocation: the URL of acps must be http or https, with a host, and without " +
			"a user, a query or a #",
		"ocsp staple\nca " + none: "revocation: ca: " + none + ": it cannot be read (open " + none +
			": no such file or directory); correct its path or its permissions",
		"registry https://registry.example/a": "revocation: the answers of https://registry.example/a are not signed: the " +
			"URL must be https, and the root of its certificate must be given; on this host neither is needed",
	}, func(options string) error {
		r, err := readRevocation(options)
		if err == nil {
			err = r.provision(process)
			r.stop(process)
		}
		return err
	})
}

func workingDirectory(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRevocationPlaceholder: a list whose placeholder is a URL is no file.
func TestRevocationPlaceholder(t *testing.T) {
	t.Setenv("LIST", "https://ca.example/list.crl")
	r, err := readRevocation("crl {env.LIST} one.crl")
	if err != nil {
		t.Fatal(err)
	}
	var got []revocation.Source
	for i := range r.Sources {
		c, err := r.Sources[i].config()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, c)
	}
	want := []revocation.Source{{Kind: revocation.CRL, Location: "https://ca.example/list.crl"},
		{Kind: revocation.CRL, Location: filepath.Join(workingDirectory(t), "one.crl")}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the sources (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"one.crl"}, r.Files()); diff != "" {
		t.Errorf("the files (-want +got):\n%s", diff)
	}
}

// TestCertificatesMistakes: what is said about each mistake of certificates, before the authority is asked.
func TestCertificatesMistakes(t *testing.T) {
	const directory = "https://ca.example/acme/directory"
	none := filepath.Join(t.TempDir(), "none.pem")
	for _, tc := range []struct {
		c    *Certificates
		want string
	}{
		{&Certificates{Directory: directory, Partners: []string{"me"}}, `certificates: partners: "me": the AIC has 2 ` +
			`characters, neither the 32 of an AIC of v01.00 nor the dots of a later one`},
		{&Certificates{Directory: "https://ca.example/directory", TrustBundle: "b.pem"}, "certificates: trust_bundle is " +
			"for an authority of ACPs, whose directory is <url>/acme/directory"},
		{&Certificates{Directory: directory, CA: []string{none}}, "certificates: tls ca: open " + none +
			": no such file or directory"},
	} {
		err := tc.c.Provision(nil, nil)
		if err == nil {
			tc.c.Close()
			t.Errorf("%+v is accepted", tc.c.Partners)
			continue
		}
		if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// TestCredentialErrors: what is said where there is no credential for an agent. No credential is quoted.
func TestCredentialErrors(t *testing.T) {
	const aic = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"
	const good = `{"keyId":"k","macKey":"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE","aic":"`
	const missing = "{env.NO_SUCH_EAB}"
	const neither = "no eab in certificates is for this agent, and there is no option registry"
	for _, tc := range []struct {
		eab  []string
		want string // of the error
	}{
		{nil, neither},
		{[]string{good + `1.2"}`}, neither},
		{[]string{good + `1.2.156.3088.1.1.34c2.478bdf.3gf546.0ju4"}`}, ""},
		{[]string{"hunter2"}, "the EAB is not the JSON that a registry answers, with keyId and macKey"},
		{[]string{missing}, "eab has a placeholder without a value: {env.NO_SUCH_EAB}"},
		{[]string{"hunter2", good + `"}`}, ""},
		{[]string{`{"keyId":"k","macKey":"aHVudGVyMg"}`}, "the macKey of the EAB has 7 bytes, and must have at least 16"},
	} {
		c, got := new(Certificates), ""
		for i, text := range tc.eab {
			if text != missing {
				file := filepath.Join(t.TempDir(), strconv.Itoa(i))
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				text = "{file." + file + "}"
			}
			c.EAB = append(c.EAB, text)
		}
		if _, err := c.Credential(t.Context(), aic, nil); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tc.eab, diff)
		}
	}
}

// TestIssuerErrors: what is said where the keys of an issuer are of no use.
func TestIssuerErrors(t *testing.T) {
	made := devpkitest.Make(t, devpki.Options{})
	none := filepath.Join(t.TempDir(), "none.pem")
	for _, tc := range []struct {
		issuer OwnIssuer
		want   string
	}{
		{OwnIssuer{Name: "https://a.example", Keys: []string{none}}, "issuer: keys: open " + none +
			": no such file or directory"},
		{OwnIssuer{Name: "https://a.example", Keys: []string{"{env.NO_SUCH_DIR}/a.pem"}}, "issuer: keys: the name of a " +
			"file has a placeholder without a value: {env.NO_SUCH_DIR}"},
		{OwnIssuer{Name: "https://a.example", Keys: []string{made.CA.Cert}}, "issuer: keys: " + made.CA.Cert + ": there " +
			"is no private key in PEM; a key must be one for ES256 (the curve P-256) or for EdDSA (Ed25519); make one with: " +
			"openssl genpkey -algorithm ed25519 -out <file>"},
		{OwnIssuer{Name: "https://a.example"}, "issuer: it has no key to sign with"},
		{OwnIssuer{Keys: []string{made.CA.Key}}, "issuer: it has no name, which is iss in its tokens"},
	} {
		_, err := tc.issuer.Read()
		if err == nil {
			t.Errorf("%+v is accepted", tc.issuer)
			continue
		}
		if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if issuer, err := (*OwnIssuer)(nil).Read(); issuer != nil || err != nil {
		t.Errorf("without an issuer: %v, %v", issuer, err)
	}
}

// TestJWKS: the keys are read, and nothing else is done with them.
func TestJWKS(t *testing.T) {
	j := &JWKS{keys: []byte(`{"keys":[]}`)}
	for method, want := range map[string]string{http.MethodGet: `{"keys":[]}`, http.MethodHead: ""} {
		w := httptest.NewRecorder()
		err := j.ServeHTTP(w, httptest.NewRequest(method, "/", nil), nil)
		got := []string{w.Body.String(), w.Header().Get("Content-Type"), w.Header().Get("Content-Length")}
		if diff := cmp.Diff([]string{want, "application/jwk-set+json", "11"}, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", method, err, diff)
		}
	}
	w := httptest.NewRecorder()
	err := j.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil), nil)
	if err == nil || w.Header().Get("Allow") != "GET, HEAD" || w.Body.Len() > 0 {
		t.Errorf("POST is answered: %v, %q", err, w.Body)
	}
}
