// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	_ "github.com/aip-gateway/aip-gateway/cli"
)

// TestPolicyRecipes runs the commands below each recipe of docs/policy.md, and compares what they print.
func TestPolicyRecipes(t *testing.T) {
	_, recipes, _ := strings.Cut(pages(t)["docs/policy.md"], "\n## Recipes\n")
	t.Chdir(t.TempDir())
	if err := os.WriteFile("library.pem", certificateOf(t, "City Library"), 0o600); err != nil {
		t.Fatal(err)
	}
	found := 0
	recipe := regexp.MustCompile("(?s)### ([^\n]*)\n.*?```caddyfile\n(.*?)```\n.*?```\n(.*?)```\n")
	for _, m := range recipe.FindAllStringSubmatch(recipes, -1) {
		found++
		t.Run(m[1], func(t *testing.T) {
			if err := os.WriteFile("Caddyfile", []byte(m[2]), 0o600); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(m[3], transcript(t, m[3])); diff != "" {
				t.Errorf("(-page +command):\n%s", diff)
			}
		})
	}
	if found != strings.Count(recipes, "### ") || found < 10 {
		t.Errorf("%d recipes have commands", found)
	}
}

// transcript runs the commands of a transcript, and returns it with what they print.
func transcript(t *testing.T, of string) string {
	t.Helper()
	var out bytes.Buffer
	for line := range strings.Lines(of) {
		command, ok := strings.CutPrefix(line, "$ caddy aip ")
		if !ok {
			continue
		}
		out.WriteString(line)
		aip := &cobra.Command{Use: "aip", SilenceErrors: true, SilenceUsage: true}
		caddycmd.Commands()["aip"].CobraFunc(aip)
		aip.SetOut(&out)
		aip.SetArgs(arguments(command))
		// The error of a call that is denied is its exit status alone.
		if err := aip.Execute(); err != nil && !strings.Contains(err.Error(), "exiting with status 2") {
			t.Errorf("%s: %v", command, err)
		}
	}
	return out.String()
}

// arguments splits a command line as a shell does, as far as the page needs it.
func arguments(line string) (args []string) {
	for i, part := range strings.Split(strings.TrimSpace(line), "'") {
		if i%2 == 1 {
			args = append(args, part)
		} else {
			args = append(args, strings.Fields(part)...)
		}
	}
	return args
}

// certificateOf returns a certificate of an organization.
func certificateOf(t *testing.T, organization string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		Subject: pkix.Name{CommonName: "10001000011K912345E789ABCDEF2353", Organization: []string{organization},
			Country: []string{"CN"}}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
