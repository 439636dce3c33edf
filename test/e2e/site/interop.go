// SPDX-License-Identifier: Apache-2.0

package site

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// RunAgent runs an agent that says where it listens, and returns its URL.
func RunAgent(t testing.TB, path string, args ...string) string {
	t.Helper()
	p := StartProcess(t, t.TempDir(), nil, path, append(args, "-addr", "127.0.0.1:0")...)
	return "http://" + p.WaitFor(t, `listening on (\S+)`)[1]
}

// SDKBinary returns the path of one of the programs on other projects' SDKs.
func SDKBinary(t testing.TB, name string) string {
	t.Helper()
	return Binary(t, "", "../../interop/bin/"+name, "make test/interop/bin/"+name)
}

// SDKAgents are the agents on other projects' SDKs, each as it is started.
var SDKAgents = map[string][]string{
	"legacy-trpc": {"legacy-trpc"},
	"a2a-go-03":   {"a2a-go-03", "agent"},
	"a2a-go-10":   {"a2a-go-10", "agent"},
	"js-03":       {"node", "js-03/agent.mjs"},
	"js-10":       {"node", "js-10/agent.mjs"},
}

// SDKCommand returns the command line of a program: a name in interop/bin, or node and a file in interop.
func SDKCommand(t testing.TB, words ...string) (path string, args []string) {
	t.Helper()
	if words[0] != "node" {
		return SDKBinary(t, words[0]), words[1:]
	}
	file, err := filepath.Abs("../../interop/" + words[1])
	if err != nil {
		t.Fatal(err)
	}
	return "node", append([]string{file}, words[2:]...)
}

// Pinned says what an implementation is.
type Pinned struct {
	Name   string // as the page calls it
	Folder string // in interop
	Of     string // the package whose version the page names: the folder's go.mod or package-lock.json has it
	NPM    bool   // it is package-lock.json
}

// Version is the one that is pinned.
func (o *Pinned) Version(t *testing.T) string {
	t.Helper()
	folder := "../../interop/" + o.Folder
	version := ""
	if o.NPM {
		lock, err := os.ReadFile(folder + "/package-lock.json")
		NoError(t, err)
		version = gjson.GetBytes(lock, "packages.node_modules/"+strings.ReplaceAll(o.Of, ".", `\.`)+".version").Str
	} else {
		module, err := os.ReadFile(folder + "/go.mod")
		NoError(t, err)
		if found := regexp.MustCompile(`\s` + regexp.QuoteMeta(o.Of) + ` v(\S+)`).FindSubmatch(module); found != nil {
			version = string(found[1])
		}
	}
	if version == "" {
		t.Fatalf("%s does not say which version of %s it has", folder, o.Of)
	}
	return version
}

// WantTable checks the table below a heading of the page.
func WantTable(t *testing.T, title, want string) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/compatibility.md")
	NoError(t, err)
	_, section, _ := strings.Cut(string(page), "\n## "+title+"\n")
	_, table, _ := strings.Cut(section, "|---|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if diff := gocmp.Diff(want, strings.TrimSpace(table)+"\n"); diff != "" {
		t.Errorf("%s (-run +page):\n%s\nIt should be:\n%s", title, diff, want)
	}
}
