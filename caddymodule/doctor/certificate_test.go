// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddytls"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
)

// noon is the time of examinations in tests.
var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// issuer is a certificate with its key, in files.
type issuer struct {
	cert      *x509.Certificate
	key       *ecdsa.PrivateKey
	file, own string // of the certificate, and of the key
}

// issue makes a certificate that is valid for a year around noon, changed by some functions. Without a CA, it is signed
// by itself.
func issue(t *testing.T, name string, ca *issuer, change ...func(*x509.Certificate)) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: noon.AddDate(0, -6, 0), NotAfter: noon.AddDate(0, 6, 0), BasicConstraintsValid: true}
	for _, f := range change {
		f(c)
	}
	parent, signer := c, key
	if ca != nil {
		parent, signer = ca.cert, ca.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{made, key, keep(t, name+".pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		keep(t, name+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))}
}

// keep writes a file in a directory of its own.
func keep(t *testing.T, name string, text []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// chainOf writes certificates into one file.
func chainOf(t *testing.T, all ...*issuer) string {
	t.Helper()
	var text bytes.Buffer
	for _, one := range all {
		if err := pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: one.cert.Raw}); err != nil {
			t.Fatal(err)
		}
	}
	return keep(t, "chain.pem", text.Bytes())
}

func isCA(c *x509.Certificate) { c.IsCA, c.KeyUsage = true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign }

func ofSite(c *x509.Certificate) { c.DNSNames = []string{"a.example"} }

// uses has a certificate for some uses only.
func uses(all ...x509.ExtKeyUsage) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.ExtKeyUsage = all }
}

// valid has a certificate valid from some days after noon until others.
func valid(from, until int) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = noon.AddDate(0, 0, from), noon.AddDate(0, 0, until)
	}
}

// online has a certificate say where that of its issuer is.
func online(c *x509.Certificate) { c.IssuingCertificateURL = []string{"http://ca.example/ca.crt"} }

// holds holds that of a file one thing is said, or nothing where want is empty.
func holds(t *testing.T, file string, want Finding, got []Finding) {
	t.Helper()
	var all []Finding
	if want.Text != "" {
		want.Subject = file
		all = []Finding{want}
	}
	if diff := cmp.Diff(all, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// TestPairs: what is said about a certificate with its chain and its key.
func TestPairs(t *testing.T) {
	const client, server = x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth
	root := issue(t, "root", nil, isCA)
	middle := issue(t, "middle", root, isCA)
	old := issue(t, "old", root, isCA, valid(-9, -1))
	site := issue(t, "site", middle, ofSite, uses(server), online)
	late := issue(t, "late", old, ofSite)
	soon := issue(t, "soon", root, isCA, valid(-90, 9)) // which is for its issuer to see to
	next := issue(t, "next", soon, ofSite)
	none := filepath.Join(t.TempDir(), "none.pem")
	until := func(one *issuer) string { return "it is valid until " + stamp(one.cert.NotAfter) }
	say := func(s Status, text string) Finding { return Finding{Check: CheckCertificate, Status: s, Text: text} }
	for _, tc := range []struct {
		file string
		of   *issuer // whose key is given
		use  x509.ExtKeyUsage
		want Finding
	}{
		{none, site, server, say(Broken, "it cannot be read (open "+none+": no such file or directory); correct its path "+
			"or its permissions")},
		{site.file, root, server, say(Broken, "its key "+root.own+" cannot be used (private key does not match public "+
			"key); name the key that it was issued for")},
		{chainOf(t, site, middle), site, server, say(OK, until(site))},
		{chainOf(t, site, middle, root), site, server, say(OK, until(site))},
		{chainOf(t, site, root), site, server, say(Broken, "the certificate of site is not signed by the one that follows "+
			"it in the file; put the site's own first, and behind each the one of its issuer")},
		{chainOf(t, next, soon), next, server, say(OK, until(next))},
		{site.file, site, server, say(Warning, "the file has only the certificate itself, and its issuer is no root of "+
			"the system; add the certificate of its issuer behind it")},
		{chainOf(t, late, old), late, server, say(Broken, "the certificate of old has expired on "+
			stamp(old.cert.NotAfter)+"; renew it, and run caddy reload --force")},
		{"", issue(t, "site", root, ofSite, valid(1, 9)), server, say(Broken, "the certificate of site is valid only from "+
			stamp(noon.AddDate(0, 0, 1))+"; correct the clock of this machine, or wait")},
		{"", issue(t, "site", root, ofSite, valid(-90, 9)), server, say(Warning, "the certificate of site expires on "+
			stamp(noon.AddDate(0, 0, 9))+"; renew it, and run caddy reload --force")},
		{"", root, server, say(Broken, "it is the certificate of a CA; name one that the CA has issued")},
		{"", issue(t, "site", root, ofSite, uses(client)), server, say(Broken, "its extended key usage lacks serverAuth, so "+
			"that Leaders refuse it; have it issued with serverAuth")},
		{"", issue(t, "leader", root, uses(server)), client, say(Broken, "its extended key usage lacks clientAuth, so that "+
			"agents and brokers refuse it; have it issued with clientAuth")},
		{"", issue(t, "site", root), server, say(Broken, "it has no DNS name and no IP address, so that Leaders refuse it; "+
			"have it issued with the name of the site")},
		{"", issue(t, "leader", root), client, say(OK, "it is valid until "+stamp(noon.AddDate(0, 6, 0)))},
		{"", issue(t, "any", root, ofSite, uses(x509.ExtKeyUsageAny)), server, say(OK, "it is valid until "+
			stamp(noon.AddDate(0, 6, 0)))},
	} {
		if tc.file == "" {
			tc.file = tc.of.file
		}
		holds(t, tc.file, tc.want, examinePair(tc.file, tc.of.own, tc.use, noon))
	}
}

// TestPools: what is said about the roots that certificates of Leaders are checked against.
func TestPools(t *testing.T) {
	root := issue(t, "root", nil, isCA)
	soon := issue(t, "soon", nil, isCA, valid(-90, 9))
	leader := issue(t, "leader", root)
	empty := keep(t, "empty.pem", nil)
	for file, want := range map[string]Finding{
		root.file: {},
		chainOf(t, root, soon): {CheckClientAuth, Warning, "", "the certificate of soon expires on " +
			stamp(soon.cert.NotAfter) + "; renew it, and run caddy reload --force"},
		chainOf(t, root, leader): {CheckClientAuth, Broken, "", "the certificate of leader is not that of a CA, so that no " +
			"Leader is trusted; put the CAs of Leaders into trust_pool"},
		empty: {CheckClientAuth, Broken, "", "it holds no certificate in PEM; name the right file"},
	} {
		holds(t, file, want, examinePool(file, noon))
	}
	// Of other files, only the end is said: what else is wrong is an error of the configuration.
	holds(t, empty, Finding{}, examineEnds(empty, noon))
	holds(t, leader.file, Finding{}, examineEnds(leader.file, noon))
	holds(t, soon.file, Finding{CheckCertificate, Warning, "", "the certificate of soon expires on " +
		stamp(soon.cert.NotAfter) + "; renew it, and run caddy reload --force"}, examineEnds(soon.file, noon))
}

// TestLists: the next list of revoked certificates is asked for when it is there soon, or is overdue.
func TestLists(t *testing.T) {
	root := issue(t, "root", nil, isCA, func(c *x509.Certificate) { c.SubjectKeyId = []byte{1} })
	list := func(next time.Time) string {
		der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{Number: big.NewInt(1),
			ThisUpdate: noon.AddDate(0, 0, -30), NextUpdate: next}, root.cert, root.key)
		if err != nil {
			t.Fatal(err)
		}
		return keep(t, "list.crl", pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}))
	}
	for days, want := range map[int]bool{-1: true, 1: true, 60: false} {
		next := noon.AddDate(0, 0, days)
		var said Finding
		if want {
			said = Finding{CheckCertificate, Warning, "", "the next list of revoked certificates of CN=root is there on " +
				stamp(next) + "; get it, and run caddy reload --force"}
		}
		file := list(next)
		holds(t, file, said, examineCRL(file, noon))
	}
	holds(t, root.file, Finding{}, examineCRL(root.file, noon))
}

// TestAICs: a certificate with the AIC of no Partner, or with one that is wrong, is noticed.
func TestAICs(t *testing.T) {
	made := devpkitest.Make(t, devpki.Options{})
	of := func(aics ...string) (all []mounted) {
		for _, aic := range aics {
			all = append(all, mounted{settings: partnerSettings{AIC: aic}})
		}
		return all
	}
	aic := string(made.LeaderV1.AIC)
	broken := issue(t, "none", nil, func(c *x509.Certificate) { c.URIs = []*url.URL{{Scheme: "acps", Host: "none"}} })
	for _, tc := range []struct {
		file string
		all  []mounted
		want Finding
	}{
		{made.LeaderV1.Cert, of("", strings.ToLower(aic)), Finding{}},
		{made.LeaderV1.Cert, of("", ""), Finding{}},
		{made.LeaderV1.Cert, of("other", ""), Finding{CheckCertificate, Warning, "", "it names the AIC " + aic +
			", which is the aic of no aip_gateway; set aic, or use the Partner's certificate"}},
		{issue(t, "plain", nil).file, of("other"), Finding{}},
		{filepath.Join(t.TempDir(), "none.pem"), of("other"), Finding{}},
	} {
		holds(t, tc.file, tc.want, examineAIC(tc.file, tc.all))
	}
	if found := examineAIC(broken.file, nil); len(found) != 1 || found[0].Status != Warning ||
		!strings.HasPrefix(found[0].Text, "it is in no profile of ACPs (") ||
		!strings.HasSuffix(found[0].Text, "); have it issued again") {
		t.Errorf("of a URI that is no AIC is said %+v", found)
	}
}

// TestTrustFiles: each file once, of the pools of files only.
func TestTrustFiles(t *testing.T) {
	policy := func(pool string) *caddytls.ConnectionPolicy {
		return &caddytls.ConnectionPolicy{ClientAuthentication: &caddytls.ClientAuthentication{CARaw: []byte(pool)}}
	}
	got := TrustFiles(nil, new(caddytls.ConnectionPolicy), policy(`{"provider":"file","pem_files":["b","a"]}`),
		policy(`{"provider":"aip_file","pem_files":["a","c"]}`), policy(`{"provider":"http","pem_files":["d"]}`), policy(`7`))
	if diff := cmp.Diff([]string{"a", "b", "c"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestExamineCertificates: each kind of file in a configuration is examined as what it is.
func TestExamineCertificates(t *testing.T) {
	root, soon := issue(t, "root", nil, isCA), issue(t, "soon", nil, isCA, valid(-90, 9))
	leaf := issue(t, "leaf", root, ofSite)
	c := new(configuration)
	c.Apps.AIP = []byte(`{"aun":{"cert":"` + soon.file + `","roots":["` + root.file + `"]}}`)
	c.Apps.TLS.Certificates.Files = []caddytls.CertKeyFilePair{{Certificate: leaf.file, Key: leaf.own}}
	pool := []byte(`{"provider":"file","pem_files":["` + leaf.file + `"]}`)
	p := mounted{Partner: Partner{Policies: caddytls.ConnectionPolicies{{
		ClientAuthentication: &caddytls.ClientAuthentication{CARaw: pool}}}}}
	p.settings.Agent.TLS = keyedPair{CA: []string{soon.file}, Cert: leaf.file, Key: leaf.own}
	p.settings.Group.TLS = keyedPair{Cert: root.file, Key: root.own}
	var got []string
	for _, f := range c.examineCertificates([]mounted{p, p}, noon) {
		words := strings.Fields(f.Text)
		got = append(got, f.Check+" "+string(f.Status)+" "+filepath.Base(f.Subject)+": "+strings.Join(words[:4], " "))
	}
	const client, ca = "certificate ok leaf.pem: it is valid until", "certificate error root.pem: it is the certificate"
	want := []string{client, client, ca, client, ca, // of the site, and twice those shown to agents and brokers
		"client_auth error leaf.pem: the certificate of leaf", "certificate warning soon.pem: the certificate of soon"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
