// SPDX-License-Identifier: Apache-2.0

package legacy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/a2atest"
)

// TestTaskOverTurns: a Task has as many artifacts as it lists, but those of earlier turns are not new ones.
func TestTaskOverTurns(t *testing.T) {
	for _, tc := range []struct {
		name             string
		withdrawn, known []string // products of the name n: an id, a space and a text
		lists            string   // the texts of artifacts with the index 0 and the name n
		want             []string // as known
	}{
		{name: "the first turn", lists: "a b a", want: []string{"0-n a", "0-n-2 b", "0-n-3 a"}},
		{name: "what the turn before has made, and a new one", withdrawn: []string{"0-n a"}, lists: "a b",
			want: []string{"0-n b"}},
		{name: "nothing new yet", withdrawn: []string{"0-n a"}, lists: "a", want: []string{"0-n a"}},
		{name: "nothing new yet, in the third turn", withdrawn: []string{"0-n b"}, lists: "a b", want: []string{"0-n b"}},
		{name: "the third turn", withdrawn: []string{"0-n b"}, lists: "a b c d", want: []string{"0-n c", "0-n-2 d"}},
		{name: "a turn with two", withdrawn: []string{"0-n a", "0-n-2 b"}, lists: "a b c", want: []string{"0-n c"}},
		{name: "a turn with two, and nothing new", withdrawn: []string{"0-n a", "0-n-2 b"}, lists: "a b",
			want: []string{"0-n a", "0-n-2 b"}},
		{name: "only what is new", withdrawn: []string{"0-n a"}, lists: "b c", want: []string{"0-n b", "0-n-2 c"}},
		{name: "the same again", withdrawn: []string{"0-n a"}, lists: "a a", want: []string{"0-n a"}},
		{name: "after a question, products stay", known: []string{"0-n a"}, lists: "a b",
			want: []string{"0-n a", "0-n-2 b"}},
		{name: "what a stream has replaced stays so", known: []string{"0-n b"}, lists: "a b c",
			want: []string{"0-n b", "0-n-2 c"}},
		{name: "resumed", withdrawn: []string{"0-n a"}, known: []string{"0-n b", "0-n-2 c"}, lists: "a b c d",
			want: []string{"0-n b", "0-n-2 c", "0-n-3 d"}},
		{name: "the product of another artifact", known: []string{"1-n a", "0-n-n a", "0-nn a"}, lists: "a b",
			want: []string{"0-n a", "0-n-2 b"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			products := func(all []string) (list []task.Product) {
				for _, p := range all {
					id, text, _ := strings.Cut(p, " ")
					list = append(list, task.Product{ID: "artifact-" + id, Name: "n", DataItems: []task.DataItem{task.Text(text)}})
				}
				return list
			}
			var artifacts []string
			for text := range strings.FieldsSeq(tc.lists) {
				artifacts = append(artifacts, fmt.Sprintf(`{"index":0,"name":"n","parts":[{"text":%q}]}`, text))
			}
			c := a2a.Legacy().For(translate.Query{ID: "r", Task: "t", Withdrawn: products(tc.withdrawn)})
			body := `{"id":"r","result":{"id":"t","status":{"state":"working"},"artifacts":[` + strings.Join(artifacts, ",") +
				`]}}`
			rep, err := c.Reply([]byte(body), products(tc.known))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(products(tc.want), rep.Products); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestStreamGoesOnFromTask: a piece of a stream after a whole Task belongs to the last artifact of its list.
func TestStreamGoesOnFromTask(t *testing.T) {
	withdrawn := []task.Product{{ID: "artifact-0", DataItems: []task.DataItem{task.Text("a")}}}
	s := a2a.Legacy().For(translate.Query{ID: "r", Task: "t", Turn: true, Withdrawn: withdrawn}).NewStream(nil)
	var got string
	for _, in := range []string{
		`{"id":"t","status":{"state":"working"},"artifacts":["a","b","c"]}`,
		`{"id":"t","artifact":{"append":true,"parts":"d"}}`,
		`{"id":"t","artifact":{"parts":"e"}}`,
	} {
		got += a2atest.Show(s.Event("", []byte(`{"id":"r","result":`+in+`}`)))
	}
	want := "report whole working (working)\n" + texts("artifact-0", "", "b") + texts("artifact-0-2", "", "c") +
		pieces("artifact-0-2+d", "artifact-0-3 e")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
