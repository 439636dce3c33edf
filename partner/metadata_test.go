// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// none is no kind of error.
const none = task.Kind(255)

func TestMetadataSurvives(t *testing.T) {
	for _, n := range []metadata{
		{Terms: agreedTerms{Terms: terms}, Ref: agent.Ref{Task: "t\"1", Session: "s"}, Revision: "completed 1a"},
		{Terms: agreedTerms{Terms: task.Terms{MaxProductsBytes: 7}}, Stream: true, Tentative: true,
			PendingAt: time.Unix(1, 5e6).UTC(),
			Pending: &task.Message{ID: "m", SentAt: time.Unix(9, 0).UTC(),
				SenderRole: task.Leader, SenderID: "l", Command: task.Start, Params: []byte(`{"a":1}`),
				DataItems: []task.DataItem{task.Text("x")}, TaskID: "t"}},
		{Terms: agreedTerms{AutoComplete: true, Direct: true}, State: task.AwaitingInput,
			Changed: time.Unix(2, 7e6).UTC(), Session: "s\n",
			Watched: true, SelfResuming: true},
		{State: task.Working, Unreported: true, Kept: true},
		{State: task.Completed, WithoutTask: true},
		{State: task.Working, Open: &[]string{"p\n1"}},
		{State: task.Working, Open: &[]string{"a", "b"}},
		{State: task.Completed, Trace: traceID{0x0a, 15: 0xff}},
	} {
		var got metadata
		if err := json.Unmarshal(n.encode(), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(n, got); diff != "" {
			t.Errorf("note (-written +read):\n%s", diff)
		}
	}
}

// TestNewerMetadata: members added by a newer version to the metadata of a task do not matter to this one.
func TestNewerMetadata(t *testing.T) {
	want := metadata{State: task.Working, Session: "s", Changed: time.Unix(2, 0).UTC(), Unsent: true}
	newer := append([]byte(`{"mood":{"good":[true]},`), want.encode()[1:]...)
	var got metadata
	if err := json.Unmarshal(newer, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
