// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/auntest"
)

func TestAUNID(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "id.pem")
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		cmd := aunIDCommand()
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(append(args, "--file", file))
		err := cmd.Execute()
		return out.String(), err
	}
	out, err := run("leader.aid.test")
	if err != nil || !strings.HasPrefix(out, "made  "+file+", leader.aid.test, no certificate yet") {
		t.Fatalf("%s, %v", out, err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if out, err := run("leader.aid.test"); err != nil || !strings.HasPrefix(out, "kept") {
		t.Errorf("%s, %v", out, err)
	}
	if _, err := run("other.aid.test"); err == nil {
		t.Error("the identity of another AID was kept")
	}

	// The certificate of another key is refused, and so is one of a foreign root.
	pki := auntest.NewPKI(t)
	foreign := filepath.Join(dir, "foreign.pem")
	if err := os.WriteFile(foreign, []byte(pki.Identity("leader.aid.test").CertPEM()), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run("leader.aid.test", "--cert", foreign); err == nil {
		t.Error("the certificate of another key was accepted")
	}
	id := pki.Identity("leader.aid.test")
	if err := (&aun.Identity{AID: id.AID, Key: id.Key}).Save(file, true); err != nil {
		t.Fatal(err)
	}
	cert, roots := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "roots.pem")
	if err := os.WriteFile(cert, []byte(id.CertPEM()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(roots, auntest.NewPKI(t).RootsPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run("leader.aid.test", "--cert", cert, "--roots", roots); err == nil {
		t.Error("the certificate of a foreign root was accepted")
	}
	if out, err := run("leader.aid.test", "--cert", cert); err != nil || !strings.Contains(out, "certificate until") {
		t.Fatalf("%s, %v", out, err)
	}
	back, err := aun.LoadIdentity(file)
	if err != nil || back.CertPEM() != id.CertPEM() {
		t.Error(err)
	}
}
