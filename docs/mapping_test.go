// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// The tables of docs/mapping.md are made here, by running the codecs, and compared with the page. Where they differ,
// the test shows what the page should say.

// mapped compares a table of the page, known by its header, with its rows as the codecs make them; of the columns with
// these numbers, or of all.
func mapped(t *testing.T, header string, want [][]string, columns ...int) {
	t.Helper()
	got := tables(pages(t)["docs/mapping.md"], header)
	for i, row := range got {
		var cells []string
		for _, at := range columns {
			cells = append(cells, row[at])
		}
		if cells != nil {
			got[i] = cells
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		var table strings.Builder
		for _, row := range want {
			table.WriteString("| " + strings.Join(row, " | ") + " |\n")
		}
		t.Errorf(
			"docs/mapping.md does not say what the codecs do (-code +page):\n%s\nIt should be:\n%s\n%s",
			diff,
			header,
			table.String(),
		)
	}
}

// merged puts rows into one that differ in a column alone.
func merged(rows [][]string, column int) (all [][]string) {
	for _, row := range rows {
		at := slices.IndexFunc(all, func(other []string) bool {
			return slices.Equal(slices.Delete(slices.Clone(row), column, column+1),
				slices.Delete(slices.Clone(other), column, column+1))
		})
		if at < 0 {
			all = append(all, slices.Clone(row))
			continue
		}
		all[at][column] += ", " + row[column]
	}
	return all
}

// says looks for a sentence in the page.
func says(t *testing.T, sentence string) {
	t.Helper()
	if !strings.Contains(strings.Join(strings.Fields(pages(t)["docs/mapping.md"]), " "), sentence) {
		t.Errorf("docs/mapping.md should say %q", sentence)
	}
}

// header returns that of a table.
func header(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |" }

// quoted returns words as the page shows them: a dash where there are none.
func quoted(words ...string) string {
	words = slices.DeleteFunc(slices.Clone(words), func(s string) bool { return s == "" })
	if len(words) == 0 {
		return "–"
	}
	return "`" + strings.Join(words, "`, `") + "`"
}

// Both sides of every dialect. Every dialect is a name in the page.
var (
	mappedServers = []translate.Server{
		aip.Server(), aip.ServerV2("P"), a2a.LegacyServer(false), a2a.V03Server(false), a2a.V1Server(false),
		a2a.V1RESTServer(false),
	}
	confirming = []translate.Server{
		aip.Server(), aip.ServerV2("P"), a2a.LegacyServer(true), a2a.V03Server(true), a2a.V1Server(true),
		a2a.V1RESTServer(true),
	}
	mappedClients = []translate.Client{aip.Client("L"), aip.ClientV2("L"), a2a.Legacy(), a2a.V03(), a2a.V1(), a2a.V1REST()}
)

// The places of the dialects in these lists.
const (
	inAIP = iota
	inAIP2
	inLegacy
	in03
	in10
	inREST
)

// mappedNames returns the names of dialects.
func mappedNames(at ...int) string {
	var names []string
	for _, i := range at {
		names = append(names, mappedServers[i].Name())
	}
	return strings.Join(names, ", ")
}

// alike returns what f says of dialects, which must be the same for all of them.
func alike(t *testing.T, f func(at int) string, at ...int) string {
	t.Helper()
	first := f(at[0])
	for _, i := range at[1:] {
		if other := f(i); other != first {
			t.Errorf(
				"%s and %s share a column of the page, but have %q and %q",
				mappedServers[at[0]].Name(),
				mappedServers[i].Name(),
				first,
				other,
			)
		}
	}
	return first
}

// dig returns the JSON at a path of members and indices; nothing where there is none.
func dig(body []byte, path ...string) json.RawMessage {
	for _, name := range path {
		if n, err := strconv.Atoi(name); err == nil {
			var list []json.RawMessage
			if json.Unmarshal(body, &list) != nil || n >= len(list) {
				return nil
			}
			body = list[n]
			continue
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(body, &object) != nil {
			return nil
		}
		body = object[name]
	}
	return body
}

// word is dig for strings.
func word(body []byte, path ...string) (s string) {
	_ = json.Unmarshal(dig(body, path...), &s) // what is no string is none
	return s
}

// memberNames returns the names of an object's members, sorted.
func memberNames(body []byte) (names []string) {
	var object map[string]json.RawMessage
	_ = json.Unmarshal(body, &object) // likewise
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// shown returns the Task by which a dialect answers a get.
func shown(s translate.Server, tk *task.Task) []byte {
	body := s.AppendTask(
		nil,
		jsonrpc.ID("1"),
		&translate.Call{Call: task.Call{Message: task.Message{Command: task.Get}}},
		tk,
	)
	if result := dig(body, "result"); result != nil {
		return result
	}
	return body
}

// asked has a dialect read a call with params.
func asked(t *testing.T, s translate.Server, method, params string) (translate.Call, error) {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	req, bad := jsonrpc.Parse([]byte(body), jsonrpc.Limits{Bytes: len(body), Depth: 64})
	if bad != nil {
		t.Fatalf("%s: %v", body, bad)
	}
	return s.Decode(&translate.Request{Request: req, HTTP: "POST"})
}
