// SPDX-License-Identifier: Apache-2.0

package legacy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
)

// TestNames: an agent may give the task a name of its own in the answer to a turn, and in nothing else.
func TestNames(t *testing.T) {
	const mine = "0a2600eb-492a-4a39-826e-5d93b9b290d2"
	answer := func(rpc, id string) string {
		return `{"jsonrpc":"2.0","id":"` + rpc + `","result":{"id":"` + id + `","status":{"state":"working"}}}`
	}
	turn := translate.Query{ID: "r1", Task: mine, Session: "s", Turn: true}
	get := translate.Query{ID: "r1", Task: mine, Session: "s"}
	own := &agent.Ref{Task: "job-7", Session: "s"}
	for _, tc := range []struct {
		name string
		of   translate.Query
		in   string
		want *agent.Ref
		err  string // empty for none, "other" for ErrOtherAnswer
	}{
		{"the gateway's", turn, answer("r1", mine), nil, ""},
		{"its own", turn, answer("r1", "job-7"), own, ""},
		{"none", turn, answer("r1", ""), nil, ""},
		{"its own, asked for the task", get, answer("r1", "job-7"), nil, "other"},
		{"its own, to another request", turn, answer("r2", "job-7"), nil, "other"},
		{"a long one", turn, answer("r1", strings.Repeat("x", 257)), nil, "more than 256 bytes"},
	} {
		c := a2a.Legacy().For(tc.of)
		whole, err := c.Reply([]byte(tc.in), nil)
		checkName(t, tc.name+", as an answer", whole.Ref, err, tc.want, tc.err)
		event, err := c.NewStream(nil).Event("", []byte(tc.in))
		checkName(t, tc.name+", in a stream", event.Ref, err, tc.want, tc.err)
	}
}

func checkName(t *testing.T, name string, ref *agent.Ref, err error, want *agent.Ref, wantErr string) {
	t.Helper()
	switch {
	case wantErr == "" && err != nil, wantErr != "" && err == nil:
		t.Errorf("%s: the error is %v", name, err)
	case wantErr == "other" && !errors.Is(err, translate.ErrOtherAnswer):
		t.Errorf("%s: the error is not about another answer: %v", name, err)
	case wantErr != "" && wantErr != "other" && !strings.Contains(err.Error(), wantErr):
		t.Errorf("%s: the error is %v", name, err)
	}
	if diff := cmp.Diff(want, ref); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// TestOtherNamesInAStream: an event of a stream about another task than the first event is ignored.
func TestOtherNamesInAStream(t *testing.T) {
	text := func(id, s string) string {
		return `{"jsonrpc":"2.0","id":"r1","result":{"id":"` + id + `","artifact":{"parts":[{"type":"text","text":"` + s +
			`"}],"index":0,"append":true}}}`
	}
	s := a2a.Legacy().For(translate.Query{ID: "r1", Task: "t", Turn: true}).NewStream(nil)
	var got string
	var pieces task.Pieces
	for _, in := range []string{
		text("job-7", "a"), text("job-8", "x"), text("t", "y"), text("job-7", "b"), text("job-7", "c"), text("job-8", "z"),
		`{"jsonrpc":"2.0","id":"r1","result":{"id":"job-8","status":{"state":"completed"},"final":true}}`,
	} {
		pieces.Reset()
		if s.(translate.TextStream).Text("", []byte(in), &pieces) {
			got += pieces.Chunk(0).Product.DataItems[0].Text
			continue
		}
		rep, err := s.Event("", []byte(in))
		if err != nil {
			t.Fatal(err)
		}
		if rep.State != task.None {
			t.Errorf("the task of another name ends this one: %+v", rep)
		}
		for _, c := range rep.Chunks {
			got += c.Product.DataItems[0].Text
		}
	}
	if got != "abc" {
		t.Errorf("the text is %q", got)
	}
}

// TestNameInAPush: an agent's push about another task is not the turn's.
func TestNameInAPush(t *testing.T) {
	for _, member := range []string{"id", "taskId"} {
		for id, other := range map[string]bool{"job-7": false, "job-8": true} {
			_, err := a2a.Legacy().For(translate.Query{Task: "job-7"}).Push(
				[]byte(`{"`+member+`":"`+id+`","status":{"state":"completed"}}`), nil)
			if errors.Is(err, translate.ErrOtherAnswer) != other {
				t.Errorf("%s %s: %v", member, id, err)
			}
		}
	}
}
