// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

func TestDocsMappingContent(t *testing.T) {
	items := []struct {
		what string
		item task.DataItem
	}{
		{"text", task.Text("T")},
		{"file with bytes", task.DataItem{Kind: task.FileItem, Name: "N", MIMEType: "M", Bytes: "QQ=="}},
		{"file with a URI", task.DataItem{Kind: task.FileItem, Name: "N", MIMEType: "M", URI: "U"}},
		{"data", task.DataItem{Kind: task.DataKind, Data: json.RawMessage(`{"a":1}`)}},
		{"data that was no object", task.DataItem{Kind: task.DataKind, Data: json.RawMessage(`{"value":[1]}`),
			Metadata: json.RawMessage(`{"data_part_compat":true}`)}},
		{"any, with metadata", task.DataItem{Kind: task.TextItem, Text: "T", Metadata: json.RawMessage(`{"k":1}`)}},
	}
	var want, artifacts [][]string
	for at, c := range mappedClients[:inREST] {
		if at == inAIP2 {
			continue
		}
		inMessage, inTask, artifactItems := "parts", "artifacts", "parts"
		if at == inAIP {
			inMessage, inTask, artifactItems = "dataItems", "products", "dataItems"
		}
		for _, it := range items {
			part := dig(
				c.AppendTurn(nil, &agent.Turn{Message: task.Message{DataItems: []task.DataItem{it.item}}}, false),
				"params",
				"message",
				inMessage,
				"0",
			)
			want = append(want, []string{it.what, mappedServers[at].Name(), quoted(string(part))})

			product := task.Product{ID: "p", DataItems: []task.DataItem{it.item}}
			shownTo := shown(
				mappedServers[at],
				&task.Task{ID: "t", SessionID: "s", Status: task.Status{State: task.Working}, Products: []task.Product{product}},
			)
			if diff := cmp.Diff(string(part), string(dig(shownTo, inTask, "0", artifactItems, "0"))); diff != "" {
				t.Errorf("%s: %s is not shown to callers as it is sent to agents:\n%s", mappedServers[at].Name(), it.what, diff)
			}
			rep, err := c.Reply(fmt.Appendf(nil, enveloped(at), shownTo), nil)
			if err != nil || len(rep.Products) != 1 {
				t.Fatalf("%s: %+v %v", shownTo, rep, err)
			}
			if diff := cmp.Diff(product.DataItems, rep.Products[0].DataItems); diff != "" {
				t.Errorf("%s: %s does not come back:\n%s", mappedServers[at].Name(), it.what, diff)
			}
		}
		shownTo := shown(
			mappedServers[at],
			&task.Task{ID: "t", Products: []task.Product{{ID: "P", Name: "N", Description: "D"}}},
		)
		artifacts = append(artifacts, []string{mappedServers[at].Name(), quoted(string(dig(shownTo, inTask, "0")))})
	}
	var rows [][]string // by item, with a column for each dialect
	for _, it := range items {
		row := []string{it.what}
		for _, part := range want {
			if part[0] == it.what {
				row = append(row, part[2])
			}
		}
		rows = append(rows, row)
	}
	mapped(t, header("item", "aip", "a2a/legacy", "a2a/0.3", "a2a/1.0"), rows)
	mapped(t, header("dialect", "the product P"), merged(artifacts, 0))
}

func TestDocsMappingAgentContent(t *testing.T) {
	answer := func(at int, artifact string) task.Product {
		result := fmt.Sprintf(`{"id":"t","contextId":"c","status":{"state":"completed"},"artifacts":[%s]}`, artifact)
		switch {
		case strings.Contains(artifact, "messageId"):
			result = map[bool]string{true: artifact, false: `{"message":` + artifact + `}`}[at == in03]
		case at == in10:
			result = strings.Replace(result, `"completed"`, `"TASK_STATE_COMPLETED"`, 1)
		case at == inAIP:
			result = fmt.Sprintf(`{"type":"task","id":"t","status":{"state":"working"},"products":[%s]}`, artifact)
		}
		rep, err := mappedClients[at].Reply(fmt.Appendf(nil, enveloped(at), result), nil)
		if err != nil || len(rep.Products) != 1 {
			t.Fatalf("%s: %+v %v", result, rep, err)
		}
		return rep.Products[0]
	}
	var want [][]string
	for _, r := range []struct {
		at   []int
		part string
	}{
		{[]int{inLegacy, in03}, `{"text":"T"}`},
		{[]int{inLegacy, in03}, `{"type":"file","file":{"uri":"U","bytes":"QQ=="}}`},
		{[]int{inLegacy, in03}, `{"kind":"data","data":[1]}`},
		{[]int{inLegacy, in03}, `{"kind":"video","url":"U"}`},
		{[]int{in10}, `{"text":"T","mediaType":"text/csv"}`},
		{[]int{in10}, `{"raw":"_w"}`},
		{[]int{in10}, `{"data":[1]}`},
		{[]int{in10}, `{"video":"U"}`},
		{[]int{inAIP}, `{"type":"file","url":"U"}`},
		{[]int{inAIP}, `{"type":"video","url":"U"}`},
	} {
		f := func(at int) string {
			members := `"artifactId":"a","parts"`
			if at == inAIP {
				members = `"id":"a","dataItems"`
			}
			p := answer(at, fmt.Sprintf(`{%s:[%s]}`, members, r.part))
			text, err := json.Marshal(p.DataItems[0])
			if err != nil {
				t.Fatal(err)
			}
			return quoted(string(text))
		}
		want = append(want, []string{mappedNames(r.at...), quoted(r.part), alike(t, f, r.at...)})
	}
	mapped(t, header("agent of", "part", "data item"), want)

	want = nil
	for _, r := range []struct {
		at        []int
		artifacts []string
	}{
		{[]int{inAIP}, []string{`{"id":"A","name":"N"}`, `{"name":"N"}`, `{"dataItems":[]}`}},
		{[]int{inLegacy}, []string{`{"index":1,"name":"N"}`, `{"name":"N"}`, `{"parts":[{"text":"T"}]}`}},
		{[]int{in03, in10}, []string{`{"artifactId":"A","name":"N"}`, `{"name":"N"}`, `{"parts":[{"text":"T"}]}`,
			`{"messageId":"M","parts":[]}`}},
	} {
		row := []string{mappedNames(r.at...)}
		for _, artifact := range r.artifacts {
			row = append(row, alike(t, func(at int) string { return quoted(answer(at, artifact).ID) }, r.at...))
		}
		want = append(want, append(row, "–")[:5])
	}
	mapped(t, header("agent of", "id or index, and name", "name", "neither", "a Message `M`"), want)
}
