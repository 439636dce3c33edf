// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto/elliptic"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/aun/auntest"
	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
)

const day = 24 * time.Hour

// ends returns when certificates end, in days from now, by use and file.
func (v Validities) ends() map[string]float64 {
	all := make(map[string]float64)
	for c, valid := range v {
		all[string(c.use)+" "+filepath.Base(c.file)] = time.Until(valid.until).Round(time.Hour).Hours() / 24
	}
	return all
}

// TestValidities: of a file, the certificate that ends first counts; of several certificates with one name, the last
// one; and what cannot be read is left out.
func TestValidities(t *testing.T) {
	now := time.Now()
	young := devpkitest.Make(t, devpki.Options{Now: now})
	old := devpkitest.Make(t, devpki.Options{Now: now.Add(-360 * day), Leader: young.Leader.AIC})
	both := filepath.Join(t.TempDir(), "both.pem")
	for _, f := range []devpki.File{young.CA, old.Leader} {
		text, err := os.ReadFile(f.Cert)
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(both, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	aun := auntest.NewPKI(t)
	crl := filepath.Join(t.TempDir(), "list.der")
	if err := os.WriteFile(crl, aun.Revoke(aun.IdentityFor("a.test", elliptic.P256(), day)), 0o600); err != nil {
		t.Fatal(err)
	}
	first, last := devpkitest.KeyPair(t, old.Leader).Leaf, devpkitest.KeyPair(t, young.Leader).Leaf

	v := make(Validities)
	v.Read(UseAgentCA, both, "none.pem", "")
	v.Read(UseAgent, crl) // which holds no certificate
	v.ReadCRLs(crl, "none.der")
	v.add(useClient, "", last)
	v.add(useClient, "", first)
	want := map[string]float64{"agent_ca both.pem": 5, "aun_crl list.der": 1.0 / 24, "client .": 365}
	if diff := cmp.Diff(want, v.ends()); diff != "" {
		t.Errorf("days until the end (-want +got):\n%s", diff)
	}
	v.AddObtained(nil)
	if len(v) != len(want) {
		t.Error("there are certificates of no authority")
	}
}

// TestWarnOfCertificates: the log names those that end soon, in an order that is always the same.
func TestWarnOfCertificates(t *testing.T) {
	old := devpkitest.Make(t, devpki.Options{Now: time.Now().Add(-360 * day)}) // its root is valid for longer
	h := &Host{Loaded: make(Validities), Current: func() Validities {
		v := make(Validities)
		v.Read(UseGroup, old.LeaderV1.Cert)
		return v
	}}
	h.Loaded.Read(UseLeaders, old.CA.Cert)
	h.Loaded.Read(UseAUN, old.Leader.Cert, old.Server.Cert)
	h.Loaded.Read(UseAgent, old.Server.Cert)
	var out bytes.Buffer
	h.WarnOfCertificates(slog.New(slog.NewTextHandler(&out, nil)), time.Now())
	var got []string
	for _, m := range regexp.MustCompile(`use=(\S+) file=(\S+)`).FindAllStringSubmatch(out.String(), -1) {
		got = append(got, m[1]+" "+filepath.Base(m[2]))
	}
	want := []string{"agent server.pem", "aun leader.pem", "aun server.pem", "group leader-v1.pem"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warned of (-want +got):\n%s", diff)
	}
}
