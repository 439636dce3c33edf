// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddytls"
	"github.com/google/go-cmp/cmp"
)

// TestSharedWith: whether certificates of Leaders open a console too, by what both are checked against.
func TestSharedWith(t *testing.T) {
	ours := issue(t, "ours", nil, isCA)
	theirs, middle := issue(t, "theirs", nil, isCA), issue(t, "middle", ours, isCA)
	alone := issue(t, "alone", issue(t, "elsewhere", nil, isCA), isCA)
	files := func(all ...*issuer) trust {
		c := new(clientAuth)
		for _, one := range all {
			c.Files = append(c.Files, one.file)
		}
		return c.trust()
	}
	pool := func(text string) trust { return (&clientAuth{Pool: json.RawMessage(text)}).trust() }
	inline := func(one *issuer) trust {
		return pool(`{"provider":"inline","trusted_ca_certs":["` + base64.StdEncoding.EncodeToString(one.cert.Raw) + `"]}`)
	}
	leafs := files(ours)
	leafs.leafs = true
	const mend = "; give its site another trust_pool file, or add basic_auth or forward_auth to the site; or, if " +
		"everyone may see all tasks, write public in aip_console"
	const shared = "certificates that open an aip_gateway open the console, and it shows all tasks" + mend
	for what, tc := range map[string]struct {
		console, leaders trust
		want             string
	}{
		"two roots":                          {files(ours), files(theirs), ""},
		"one root":                           {files(ours), files(theirs, ours), shared},
		"one root, in two forms":             {files(ours), inline(ours), shared},
		"a CA below the root":                {inline(ours), files(middle, ours), shared},
		"a CA below the root of the console": {files(ours), files(middle), shared},
		"a CA above that of the console":     {files(middle), files(ours), ""},
		"a CA below one that is not known": {files(ours), files(alone), `the CA "CN=alone", whose certificates open an ` +
			"aip_gateway, is below another CA, which may be below one of the console, and the console shows all tasks; name " +
			"the certificates of operators in its site one by one, by trusted_leaf_cert_file, or add basic_auth or " +
			"forward_auth to the site; or, if everyone may see all tasks, write public in aip_console"},
		"certificates of operators, one by one": {leafs, files(ours), ""},
		"another pool of the console": {pool(`{"provider":"http"}`), files(theirs), "it is not known which certificates " +
			"open the console, and it shows all tasks" + mend},
		"another pool of the Leaders": {files(ours), pool(`{"provider":"http"}`), "it is not proven that no certificate " +
			"that opens an aip_gateway opens the console, which shows all tasks" + mend},
		"a file that is not there": {files(ours), pool(`{"provider":"file","pem_files":["/none"]}`), "it is not proven " +
			"that no certificate that opens an aip_gateway opens the console, which shows all tasks" + mend},
	} {
		if diff := cmp.Diff(tc.want, sharedWith([]trust{tc.console}, []trust{tc.leaders})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

// TestClientAuth: what a client_auth demands, by its mode or by what it has to check certificates with.
func TestClientAuth(t *testing.T) {
	for text, want := range map[string]struct{ requires, verifies bool }{
		`{}`: {false, false}, `{"mode":"request"}`: {false, false}, `{"mode":"require"}`: {false, false},
		`{"mode":"verify_if_given"}`: {false, true}, `{"mode":"require_and_verify"}`: {true, true},
		`{"ca":{"provider":"file"}}`:                  {true, true},
		`{"ca":{"provider":"file"},"mode":"request"}`: {false, false},
		`{"verifiers":[{"verifier":"leaf"}]}`:         {true, true},
		`{"trusted_ca_certs":["a"]}`:                  {true, true},
		`{"trusted_ca_certs_pem_files":["a"]}`:        {true, true},
	} {
		p := new(caddytls.ConnectionPolicy)
		if err := json.Unmarshal([]byte(`{"client_authentication":`+text+`}`), p); err != nil {
			t.Fatal(err)
		}
		if RequiresClients(p) != want.requires || VerifiesClients(p) != want.verifies {
			t.Errorf("%s: requires %t, verifies %t", text, RequiresClients(p), VerifiesClients(p))
		}
	}
	if VerifiesClients(nil) || VerifiesClients(new(caddytls.ConnectionPolicy)) {
		t.Error("without client_auth, certificates are verified")
	}
}

// TestPoliciesOf: the policies that a connection to a host may have, up to the first that is for all of them.
func TestPoliciesOf(t *testing.T) {
	var all caddytls.ConnectionPolicies
	const text = `[{"alpn":["0"],"match":{"sni":["a.example"]}},{"alpn":["1"],"match":{"sni":["*.example"]}},
		{"alpn":["2"],"match":{"sni":["{env.NAME}"]}},{"alpn":["3"],"match":{"sni":["*.example"],"remote_ip":{}}},
		{"alpn":["4"],"match":{"remote_ip":{}}},{"alpn":["5"]},{"alpn":["6"]}]`
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{
		"a.example": "0", "A.Example": "0", "b.example": "1", "*.example": "01", "b.a.example": "245", "b.c": "245",
		"": "245", "*.*": "012345",
	} {
		got := ""
		for _, p := range PoliciesOf(all, host) {
			got += p.ALPN[0]
		}
		if got != want {
			t.Errorf("%q may have the policies %s, want %s", host, got, want)
		}
	}
}
