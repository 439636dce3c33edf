// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/build"
)

// commandResult is the outcome of a finished `caddy` command.
type commandResult struct {
	Status int
	Stdout string
	Stderr string
}

// runAIP runs `caddy aip args...` in this process.
func runAIP(t *testing.T, args ...string) commandResult {
	t.Helper()
	var out, errOut bytes.Buffer
	status := runAIPWith(t.Context(), &out, &errOut, args...)
	return commandResult{status, out.String(), errOut.String()}
}

func runAIPWith(ctx context.Context, out, errOut io.Writer, args ...string) int {
	return runAIPFrom(ctx, strings.NewReader(""), out, errOut, args...)
}

func runAIPFrom(ctx context.Context, in io.Reader, out, errOut io.Writer, args ...string) int {
	root := &cobra.Command{Use: "caddy", SilenceUsage: true} // as Caddy's own is
	aip := &cobra.Command{Use: "aip"}
	aipCommand(aip)
	root.AddCommand(aip)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	root.SetArgs(append([]string{"aip"}, args...))
	err := root.ExecuteContext(ctx)
	status := 0
	if err != nil {
		status = 1
		// The type with the status is Caddy's secret, its text is not.
		fmt.Sscanf(err.Error(), "exiting with status %d", &status)
	}
	return status
}

func TestCommandGroup(t *testing.T) {
	for _, args := range [][]string{nil, {"aic"}} {
		got := runAIP(t, args...)
		if got.Status != 0 || !strings.Contains(got.Stdout, "Available Commands:") {
			t.Errorf("%q: %+v", args, got)
		}
	}
	for _, args := range [][]string{{"cal"}, {"aic", "chek"}} {
		got := runAIP(t, args...)
		path := strings.Join(append([]string{"caddy", "aip"}, args[:len(args)-1]...), " ")
		want := commandResult{Status: 1, Stderr: fmt.Sprintf("Error: unknown command %q for %q; run '%s --help' for usage\n",
			args[len(args)-1], path, path)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", args, diff)
		}
	}
}

// Every command describes itself, gives an example of itself, and names its page, not the page of Caddy's commands.
func TestCommandHelp(t *testing.T) {
	aip := &cobra.Command{Use: "aip"}
	aipCommand(aip)
	root := &cobra.Command{Use: "caddy"}
	root.SetHelpTemplate("that of Caddy")
	root.AddCommand(aip)
	slug := strings.NewReplacer(" ", "-", ",", "", "`", "")
	documented := func(c *cobra.Command) {
		_, address, _ := strings.Cut(c.HelpTemplate(), build.Docs)
		page, anchor, _ := strings.Cut(strings.TrimSpace(address), "#")
		text, err := os.ReadFile("../docs/" + page)
		if err != nil || !regexp.MustCompile(`(?m)^#+ `).Match(text) {
			t.Errorf("%s: there is no page %q: %v", c.CommandPath(), page, err)
		}
		there := anchor == ""
		for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
			there = there || slug.Replace(strings.ToLower(m[1])) == anchor
		}
		if !there {
			t.Errorf("%s: %s has no heading %q", c.CommandPath(), page, anchor)
		}
	}
	documented(aip)
	seen := 0
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			seen++
			documented(c)
			if c.Short == "" || c.Long == "" {
				t.Errorf("%s has no help", c.CommandPath())
			}
			asks := c.LocalFlags().Lookup("address") != nil // by itself, though it may have commands below it
			if c.Example != "" != (asks || !c.HasSubCommands()) {
				t.Errorf("%s: example %q", c.CommandPath(), c.Example)
			}
			if c.Example != "" && !strings.Contains(c.Example, "$ "+c.CommandPath()) {
				t.Errorf("%s: no example is of itself", c.CommandPath())
			}
			walk(c)
		}
	}
	walk(aip)
	if seen != 61 {
		t.Errorf("%d commands", seen)
	}
}

func TestAICCheck(t *testing.T) {
	const v1, v2 = "10001000011K912345E789ABCDEF2353", "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"
	for _, tt := range []struct {
		args []string
		want commandResult
	}{
		{[]string{strings.ToLower(v1)}, commandResult{Stdout: v1 + " is a valid AIC of form v1, check digits verified\n"}},
		{[]string{v2}, commandResult{Stdout: v2 +
			" is a valid AIC of form v2, check digits not verified, because there is no --salt\n"}},
		{[]string{v2, "--salt", "0x1234"}, commandResult{Stdout: v2 + " is a valid AIC of form v2, check digits verified\n"}},
		{[]string{v2, "--salt", "1235"}, commandResult{1, "",
			"Error: the check digits of the AIC are 0JU4, and 0MZ1 would be right with this salt\n"}},
		{[]string{v1[:31] + "4"}, commandResult{1, "", "Error: the check digits of the AIC are 54, and 53 would be right\n"}},
		{[]string{v2, "--salt", "12"}, commandResult{1, "", "Error: --salt must be at least 2 bytes in hex: 1234\n"}},
		{[]string{v2, "--salt", ""}, commandResult{1, "", "Error: --salt must be at least 2 bytes in hex: 1234\n"}},
		{nil, commandResult{1, "", "Error: accepts 1 arg(s), received 0\n"}},
	} {
		if diff := cmp.Diff(tt.want, runAIP(t, append([]string{"aic", "check"}, tt.args...)...)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.args, diff)
		}
	}
}

func TestAICMake(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want commandResult
	}{
		{[]string{"--year", "2025", "--ontology", "12345E789", "--instance", "abcdef23"},
			commandResult{Stdout: "10001000011K912345E789ABCDEF2353\n"}},
		{[]string{"--form", "v2", "--vendor", "34C2", "--ontology", "478BDF", "--instance", "3GF546"},
			commandResult{Stdout: "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4\n"}},
		{[]string{"--form", "v3"}, commandResult{1, "", "Error: --form is \"v3\", but must be v1 or v2\n"}},
		{[]string{"--form", "v1", "--salt", "1234"}, commandResult{1, "", "Error: an AIC of form v1 has no --salt\n"}},
		{[]string{"--form", "v2", "--year", "2025"}, commandResult{1, "", "Error: an AIC of form v2 has no --year\n"}},
		{[]string{"--form", "v2", "--salt", "xy"},
			commandResult{1, "", "Error: --salt must be at least 2 bytes in hex: 1234\n"}},
		{[]string{"--manager", "12345"}, commandResult{1, "",
			"Error: the field manager must have 1 to 4 characters of 0-9 and A-Z\n"}},
	} {
		if diff := cmp.Diff(tt.want, runAIP(t, append([]string{"aic", "make"}, tt.args...)...)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.args, diff)
		}
	}
	// A random AIC is valid, too, and new each time.
	seen := map[string]bool{}
	for range 20 {
		for _, form := range []string{"v1", "v2"} {
			aic := strings.TrimSpace(runAIP(t, "aic", "make", "--form", form).Stdout)
			if got := runAIP(t, "aic", "check", aic, "--salt", "1234"); got.Status != 0 || seen[aic] {
				t.Errorf("%s: %+v, seen %t", aic, got, seen[aic])
			}
			seen[aic] = true
		}
	}
}

var (
	dates = regexp.MustCompile(`\d{4}-\d\d-\d\d`)
	aicV2 = regexp.MustCompile(`1\.2\.156\.3088(\.[0-9A-Z]+){6}`)
)

func TestPKI(t *testing.T) {
	t.Chdir(t.TempDir())
	golden := func(verb, serverRemark string) string {
		return verb + `  .pki/ca.pem         the root; trust this one, until DATE
` + verb + `  .pki/server.pem     for the gateway, until DATE` + serverRemark + `
                          AIC
` + verb + `  .pki/leader.pem     for a Leader, profile of ACPs v02.00 and later, until DATE
                          10001000011K912345E789ABCDEF2353
` + verb + `  .pki/leader-v1.pem  for a Leader, profile of ACPs v01.00, until DATE
                          10001000011K912345E789ABCDEF2353

For the site in the Caddyfile:

	tls .pki/server.pem .pki/server-key.pem {
		client_auth {
			mode require_and_verify
			trust_pool file .pki/ca.pem
		}
	}

Next: caddy aip sample-agent
`
	}
	args := []string{"pki", "--leader", "10001000011k912345e789abcdef2353"}
	for _, tt := range []struct {
		more []string
		want string
	}{
		{nil, golden("made", "")},
		{nil, golden("kept", "")},
		{[]string{"--host", "a.example.com"}, strings.Replace(golden("kept", ", because it lacked the host a.example.com"),
			"kept  .pki/server", "made  .pki/server", 1)},
		{[]string{"--force"}, golden("made", "")},
	} {
		got := runAIP(t, append(args, tt.more...)...)
		got.Stdout = aicV2.ReplaceAllString(dates.ReplaceAllString(got.Stdout, "DATE"), "AIC")
		if diff := cmp.Diff(commandResult{Stdout: tt.want}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.more, diff)
		}
	}

	if diff := cmp.Diff(commandResult{1, "",
		"Error: --leader: the AIC has 3 characters, neither the 32 of an AIC of v01.00 nor the dots of a later one\n"},
		runAIP(t, "pki", "--leader", "abc")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := os.WriteFile(".pki/ca.pem", []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := commandResult{1, "",
		"Error: .pki/ca.pem has no PEM block \"CERTIFICATE\" at its beginning; move it away, choose another folder or use " +
			"--force\n"}
	if diff := cmp.Diff(want, runAIP(t, "pki")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The Leader made by pki by default is one known to the gateway's guard.
func TestPKIMakesValidAICs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certificates")
	got := runAIP(t, "pki", "--dir", dir)
	aics := aicV2.FindAllString(got.Stdout, -1)
	if got.Status != 0 || len(aics) != 2 {
		t.Fatalf("%+v", got)
	}
	for _, aic := range aics {
		if _, err := (identity.Checker{Salt: []byte{0x12, 0x34}}).Parse(aic); err != nil {
			t.Errorf("%s: %v", aic, err)
		}
	}
}

func TestSampleAgent(t *testing.T) {
	reader, out := io.Pipe()
	var errOut bytes.Buffer
	var wg sync.WaitGroup
	status := -1
	wg.Go(func() {
		status = runAIPWith(t.Context(), out, &errOut, "sample-agent", "--listen", "127.0.0.1:0")
		out.Close()
	})
	banner := make([]byte, 1024)
	n, err := reader.Read(banner)
	if err != nil {
		t.Fatalf("%v, %s", err, errOut.String())
	}
	wg.Go(func() { io.Copy(io.Discard, reader) })
	url := regexp.MustCompile(`http://\S+`).FindString(string(banner[:n]))
	want := "The sample agent speaks A2A v0.1 at " + url + "\n\nIn the Caddyfile: aip_gateway a2a/legacy " + url + "\n"
	if diff := cmp.Diff(want, string(banner[:n])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	client := &http.Client{Transport: new(http.Transport)}
	res, err := client.Get(url + "/.well-known/agent.json")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("status %s", res.Status)
	}

	// A stream of minutes does not hold it up.
	stream, err := client.Post(url, "application/json",
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tasks/sendSubscribe",`+
			`"params":{"id":"t","message":{"role":"user","parts":[{"type":"text","text":"slow 300"}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if _, err := stream.Body.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}

	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	client.CloseIdleConnections()
	if status != 0 || errOut.Len() > 0 {
		t.Errorf("status %d, %s", status, errOut.String())
	}
	if _, err := client.Get(url); err == nil {
		t.Error("it still answers")
	}
}

func TestSampleAgentCannotListen(t *testing.T) {
	got := runAIP(t, "sample-agent", "--listen", "127.0.0.1:-1")
	if diff := cmp.Diff(commandResult{1, "", "Error: listen tcp: address -1: invalid port\n"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
