// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	"github.com/aip-gateway/aip-gateway/acps/registry/registrytest"
	"github.com/aip-gateway/aip-gateway/aun/auntest"
	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/notify/sign"
	"github.com/aip-gateway/aip-gateway/trust/authn"
)

// pages returns every document, by its path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	below, err := filepath.Glob("docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	names = append(append(names, below...), "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md",
		"test/bench/README.md")
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(content)
	}
	return all
}

// caddyfiles returns the Caddyfiles in a page, each after an empty line.
func caddyfiles(text string) (all []string) {
	fence := regexp.MustCompile("(?s)( *)```caddyfile\n(.*?)```")
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll("\n"+m[2], "\n"+m[1], "\n"))
	}
	return all
}

// tables returns the rows of the tables of a page that have this header, as trimmed cells.
func tables(text, header string) [][]string {
	var rows [][]string
	in := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == header:
			in = true
		case !strings.HasPrefix(line, "|"):
			in = false
		case in && !strings.HasPrefix(line, "|---"):
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
	}
	return rows
}

// validate does what `caddy validate` does.
func validate(config string) error {
	adapted, warnings, err := caddyconfig.GetAdapter("caddyfile").
		Adapt([]byte(config), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return err
	}
	if len(warnings) > 0 {
		return fmt.Errorf("warnings: %v", warnings)
	}
	var c caddy.Config
	if err := json.Unmarshal(adapted, &c); err != nil {
		return err
	}
	return caddy.Validate(&c)
}

// aunFiles makes the files that the examples of AUN name.
func aunFiles(t *testing.T) {
	t.Helper()
	pki := auntest.NewPKI(t)
	own := pki.Identity("gateway.example.com")
	public, err := base64.StdEncoding.DecodeString(pki.Identity("auth.other.example").PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"roots.pem": pki.RootsPEM(), "revoked.pem": pki.Revoke(pki.Identity("bad.example.com")),
		"reviewer.pem":     []byte(pki.Identity("reviewer.example.com").CertPEM()),
		"other-issuer.pem": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
	} {
		if err := os.WriteFile(".pki/aun-"+name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := own.Save(".pki/aun-gateway.pem", false); err != nil {
		t.Fatal(err)
	}
}

// TestDocsExamples takes every Caddyfile by its word.
func TestDocsExamples(t *testing.T) {
	all := pages(t)
	// The examples name certificates as getting-started.md makes them.
	t.Chdir(t.TempDir())
	for dir, leader := range map[string]identity.AIC{".pki": "", ".operators": "", ".ontology": registrytest.Ontology} {
		if _, err := devpki.Make(devpki.Options{Dir: dir, Leader: leader}); err != nil {
			t.Fatal(err)
		}
	}
	aunFiles(t)
	_, line, err := authn.MakeKey("billing")
	if err == nil {
		err = errors.Join(os.WriteFile(".pki/keys", []byte(line), 0o600),
			os.WriteFile(".pki/password", []byte("secret"), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("WEBHOOK_SIGNING_KEY", sign.Generate())
	t.Setenv("AGENT_TOKEN", "secret")
	t.Setenv("NATS_PASSWORD", "secret")
	t.Setenv("GROUP_TOKEN_KEY", strings.Repeat("0a", 32))
	found := 0
	for name, text := range all {
		for _, input := range caddyfiles(text) {
			found++
			formatted := string(caddyfile.Format([]byte(input)))
			if strings.TrimSpace(formatted) != strings.TrimSpace(input) {
				t.Errorf("%s: an example is not formatted as caddy fmt does:\n%s", name, input)
			}
			here := strings.NewReplacer("/etc/caddy/leaders-ca.pem", ".pki/ca.pem",
				"/etc/caddy/operators-ca.pem", ".operators/ca.pem",
				"/etc/caddy/aun/", ".pki/aun-",
				"/etc/caddy/broker-ca.pem", ".pki/ca.pem", "/etc/caddy/partner.pem", ".pki/server.pem",
				"/etc/caddy/partner-key.pem", ".pki/server-key.pem",
				"/etc/caddy/ontology", ".ontology/leader",
				"/etc/caddy/sign.pem", ".pki/leader-key.pem", "/etc/caddy/sign-before.pem", ".pki/server-key.pem",
				"/etc/caddy/aip-keys", ".pki/keys", "/etc/caddy/registry-password", ".pki/password")
			if err := validate(here.Replace(formatted)); err != nil {
				t.Errorf("%s: an example is not valid: %v\n%s", name, err, input)
			}
		}
	}
	if found < 18 {
		t.Errorf("only %d examples were found", found)
	}
}

// TestDocsLinks follows every link within the documents, headings included.
func TestDocsLinks(t *testing.T) {
	all := pages(t)
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	found := 0
	for name, text := range all {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			found++
			file, heading, _ := strings.Cut(m[1], "#")
			if file == "" {
				file = filepath.Base(name)
			}
			file = filepath.Join(filepath.Dir(name), file)
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			}
			if heading != "" && !slices.Contains(headings(all[file]), heading) {
				t.Errorf("%s links to %s, but there is no such heading", name, m[1])
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d links were found", found)
	}
}

// headings returns the anchors that a page's headings have.
func headings(text string) (anchors []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		kept := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		anchors = append(anchors, strings.ReplaceAll(kept, " ", "-"))
	}
	return anchors
}

// minus is how the documents write the sign of a code.
func minus(code int) string { return strings.ReplaceAll(strconv.Itoa(code), "-", "−") }

// TestMain runs the tests in the repository's root, because pages and code are named by their paths there.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// inQuotes returns what stands in backquotes.
func inQuotes(cell string) (all []string) {
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	return all
}

// firstQuoted returns the first word in backquotes of every row of a table.
func firstQuoted(t *testing.T, page, header string) (all []string) {
	t.Helper()
	for _, row := range tables(pages(t)[page], header) {
		all = append(all, inQuotes(row[0])[0])
	}
	return all
}
