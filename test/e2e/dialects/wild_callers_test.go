// SPDX-License-Identifier: Apache-2.0

package dialects

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// wildCaller is an implementation that people write callers of A2A with.
//
// To add one, append it to wildCallers, and its row to docs/compatibility.md.
type wildCaller struct {
	site.Pinned
	speaks string // as the page says it
	front  string // of the matrix, which has run what it does; empty: it does the deeds of adkCalls
	own    string // what it does that others do not
	set    string // what an operator writes, or who configures it
}

var wildCallers = []wildCaller{
	{Pinned: site.Pinned{Name: "trpc-a2a-go", Of: "trpc.group/trpc-go/trpc-a2a-go"}, speaks: "0.1 JSON-RPC",
		front: "legacy-trpc", own: "has no `tasks/resubscribe`, and cannot send without waiting"},
	{Pinned: site.Pinned{Name: "a2a-go", Of: "github.com/a2aproject/a2a-go"}, speaks: "0.3 JSON-RPC", front: "go-03",
		own: "loses the code of an error whose `data` is a list"},
	{Pinned: site.Pinned{Name: "a2a-go", Of: "github.com/a2aproject/a2a-go/v2"}, speaks: "1.0 JSON-RPC", front: "go-10",
		own: "loses the code of an error whose `data` is an object"},
	{Pinned: site.Pinned{Name: "a2a-go", Of: "github.com/a2aproject/a2a-go/v2"}, speaks: "1.0 REST", front: "rest-10"},
	{Pinned: site.Pinned{Name: "a2a-go", Of: "github.com/a2aproject/a2a-go/v2"}, speaks: "1.0 gRPC", front: "grpc-10",
		set: callsRoot},
	{Pinned: site.Pinned{Name: "a2a-go", Of: "github.com/a2aproject/a2a-go/v2"}, speaks: "0.3 REST", front: "rest-03",
		own: "says `server error` for every error"},
	{Pinned: site.Pinned{Name: "@a2a-js/sdk", Folder: "js-03", Of: "@a2a-js/sdk", NPM: true}, speaks: "0.3 JSON-RPC",
		front: "js-03", set: callsSlash},
	{Pinned: site.Pinned{Name: "@a2a-js/sdk", Folder: "js-03", Of: "@a2a-js/sdk", NPM: true}, speaks: "0.3 REST",
		front: "js-03-rest", own: "does not pass on whether a piece is added to the one before", set: callsSlash},
	{Pinned: site.Pinned{Name: "@a2a-js/sdk", Folder: "js-10", Of: "@a2a-js/sdk", NPM: true}, speaks: "1.0 JSON-RPC",
		front: "js-10", set: callsSlash},
	{Pinned: site.Pinned{Name: "@a2a-js/sdk", Folder: "js-10", Of: "@a2a-js/sdk", NPM: true}, speaks: "1.0 REST",
		front: "js-10-rest", set: callsSlash},
	{Pinned: site.Pinned{Name: "@a2a-js/sdk", Folder: "js-10", Of: "@a2a-js/sdk", NPM: true}, speaks: "1.0 gRPC",
		front: "js-10-grpc", set: callsRoot + "; " + callsSlash},
	{Pinned: site.Pinned{Name: "Google ADK for Go", Folder: "adk-go", Of: "google.golang.org/adk/v2"},
		speaks: "1.0 JSON-RPC"},
}

// adkCalls are what ADK's remote agent does, and what it must print of it.
var adkCalls = []struct {
	name string
	args []string
	says string
}{
	{"send", []string{"", "hello"}, "echo: hello"},
	{"stream", []string{"-stream", "", "stream 4 20"}, `in pieces: true, whole: "w0 w1 w2 w3 "`},
	{"failure", []string{"-stream", "", "fail"}, "the model broke in mid-run"},
	{"conversation", []string{"", "recall", "recall", "recall"}, "I see 3 of your messages"},
}

// TestWildCallersInGo has ADK's remote agent call an agent, directly and through the gateway: it has the same.
func TestWildCallersInGo(t *testing.T) {
	t.Parallel()
	direct := site.RunAgent(t, site.SDKBinary(t, "a2a-go-23"))
	port := site.FreePort(t)
	site.Serve(t, site.Config{OtherSites: fmt.Sprintf("http://127.0.0.1:%d {\n\taip_gateway /agent* a2a %s {\n"+
		"\t\tcallers a2a\n\t\tidentity off\n\t}\n}\n", port, direct)})
	caller := site.SDKBinary(t, "adk-go")
	for _, call := range adkCalls {
		t.Run(call.name, func(t *testing.T) {
			var had [2]string
			for way, url := range []string{direct, fmt.Sprintf("http://127.0.0.1:%d/agent", port)} {
				args := slices.Clone(call.args)
				args[slices.Index(args, "")] = url
				status, stdout, stderr := site.RunProcess(t, t.TempDir(), nil, caller, append([]string{"call"}, args...)...)
				had[way] = stdout
				if status != 0 || !strings.Contains(stdout, call.says) {
					t.Errorf("it calls %s with status %d: %s%s", url, status, stdout, stderr)
				}
			}
			if had[0] != had[1] {
				t.Errorf("directly:\n%s\nthrough the gateway:\n%s", had[0], had[1])
			}
		})
	}
}

// TestWildCallersPage: the page has the callers that ask, in their order and in the versions that are pinned.
func TestWildCallersPage(t *testing.T) {
	t.Parallel()
	rows := ""
	for _, c := range wildCallers {
		rows += c.row(t)
	}
	site.WantTable(t, "Callers of A2A", rows)
}

const (
	callsRoot  = "a site of its own, without a path"
	callsSlash = "the caller's URL ends in a slash"
)

// wildDid are the words of the page for the operations of the matrix. A cut is by hand, without the client.
var wildDid = map[string][]string{"send": {"send"}, "stream": {"stream", "get"}, "cancel": {"cancel"},
	"ask": {"question"}, "fail": {"failure"}, "push": {"webhook"}}

// row is the caller's row of docs/compatibility.md.
func (c *wildCaller) row(t *testing.T) string {
	t.Helper()
	var did []string
	if c.front == "" {
		for _, call := range adkCalls {
			did = append(did, call.name)
		}
	}
	all := fronts()
	at := slices.IndexFunc(all, func(f front) bool { return f.name == c.front })
	if at < 0 && c.front != "" {
		t.Fatalf("the matrix has no front %s", c.front)
	}
	for _, op := range operations {
		if at >= 0 && (op.slow || !all[at].slow) && !slices.Contains(all[at].lacks, op.name) {
			did = append(did, wildDid[op.name]...)
		}
	}
	words := strings.Join(did, ", ")
	if words == "send, stream, get, cancel, question, failure, webhook" {
		words = "all"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", c.Name, c.Version(t), c.speaks, words, cmp.Or(c.own, "–"),
		cmp.Or(c.set, "–"))
}
