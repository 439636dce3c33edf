// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/agentapi"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

const agentAPIPage = "docs/mapping.md"

// fenced returns the first block of code of a language behind a text.
func fenced(t *testing.T, text, language string) (block, rest string) {
	t.Helper()
	_, rest, ok := strings.Cut(text, "```"+language+"\n")
	block, rest, end := strings.Cut(rest, "```")
	if !ok || !end {
		t.Fatalf("there is no block of %s", language)
	}
	return block, rest
}

// TestDocsAgentAPIAnswer replays the answer of the transcript.
func TestDocsAgentAPIAnswer(t *testing.T) {
	page, err := os.ReadFile("docs/testdata/agentapi-answer.md")
	if err != nil {
		t.Fatal(err)
	}
	events, rest := fenced(t, string(page), "sse")
	want, _ := fenced(t, rest, "text")
	var got strings.Builder
	s := agentapi.Client(agentapi.Options{}).NewStream(nil)
	for event := range strings.Lines(events) {
		data, ok := strings.CutPrefix(event, "data: ")
		if !ok {
			continue
		}
		rep, err := s.Event("", []byte(data))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range rep.Chunks {
			fmt.Fprintf(&got, "%s: %s%s\n", c.Product.ID, map[bool]string{true: "+"}[c.Append], c.Product.DataItems[0].Text)
		}
		if rep.State != task.None {
			fmt.Fprintln(&got, rep.State)
		}
	}
	if d := cmp.Diff(want, got.String()); d != "" {
		t.Errorf("what the task gets (-page +code):\n%s", d)
	}
}

// TestDocsAgentAPIRequest compares the request of the page.
func TestDocsAgentAPIRequest(t *testing.T) {
	_, rest, _ := strings.Cut(pages(t)[agentAPIPage], "**A turn**")
	want, _ := fenced(t, rest, "json")
	got := agentapi.Client(agentapi.Options{}).AppendTurn(nil, &agent.Turn{
		Ref: agent.Ref{Session: "session-4yd3…"}, Message: task.Message{DataItems: []task.DataItem{task.Text("hello")}},
	}, true)
	if d := cmp.Diff(strings.ReplaceAll(strings.TrimSpace(want), "\n ", ""), string(got)); d != "" {
		t.Errorf("the request (-page +code):\n%s", d)
	}
}

// TestDocsAgentAPIStates holds the table of responses.
func TestDocsAgentAPIStates(t *testing.T) {
	states := 0
	for _, row := range tables(pages(t)[agentAPIPage], "| response | the task |") {
		for _, state := range inQuotes(row[0]) {
			states++
			rep, err := agentapi.Client(agentapi.Options{}).Reply(
				fmt.Appendf(nil, `{"object":"response","id":"r","status":%q}`, state), nil)
			if got := quoted(string(rep.State)); err != nil || got != row[1] {
				t.Errorf("%s is %s, %v", state, got, err)
			}
		}
	}
	if states != 9 {
		t.Errorf("there are %d states", states)
	}
}

// TestDocsAgentAPIContents holds the table of contents, both ways.
func TestDocsAgentAPIContents(t *testing.T) {
	client := agentapi.Client(agentapi.Options{})
	rows := tables(pages(t)[agentAPIPage], "| content | data item |")
	for _, row := range rows {
		content := strings.Trim(row[0], "`")
		rep, err := client.Reply(fmt.Appendf(nil, `{"object":"response","id":"r","status":"completed","output":[`+
			`{"object":"message","id":"m","type":"message","content":[%s]}]}`, content), nil)
		if err != nil {
			t.Fatal(err)
		}
		shown := aip.Server().AppendTask(nil, jsonrpc.ID("1"), new(translate.Call),
			&task.Task{ID: "t", SessionID: "s", Products: rep.Products})
		if got := "`" + gjson.GetBytes(shown, "result.products.0.dataItems.0").Raw + "`"; got != row[1] {
			t.Errorf("%s is shown as %s", content, got)
		}
		items := rep.Products[0].DataItems
		sent := client.AppendTurn(nil, &agent.Turn{Message: task.Message{DataItems: items}}, true)
		want := row[0]
		switch { // as the page says
		case strings.Contains(want, "file_data"):
			want = strings.Replace(want, `"QQ=="`, `"data:application/octet-stream;base64,QQ=="`, 1)
		case strings.Contains(want, "hologram"):
			want = row[1]
		}
		if got := "`" + gjson.GetBytes(sent, "input.0.content.0").Raw + "`"; got != want {
			t.Errorf("%s is sent as %s, want %s", content, got, want)
		}
	}
	if len(rows) != 14 {
		t.Errorf("there are %d rows", len(rows))
	}
}
