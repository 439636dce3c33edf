// SPDX-License-Identifier: Apache-2.0

package aun_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aun"
)

// TestPieces: an artifact not added to another is whole, and so its last piece. A piece of an artifact that does not
// exist begins it.
func TestPieces(t *testing.T) {
	for name, c := range map[string]translate.Client{
		"an agent behind a gateway": aun.Client("agent.aid.pub"),
		"an agent that connects":    aun.Assignee("agent.aid.pub", func(string) string { return "" }),
	} {
		s := c.NewStream([]task.Product{{ID: "known"}})
		var got []string
		for _, event := range []string{
			`"artifact":{"id":"a","type":"text","content":"x"}`,
			`"artifact":{"id":"b","type":"text","content":"x"},"append":true`,
			`"artifact":{"id":"b","type":"text","content":"x"},"append":true,"last_chunk":true`,
			`"artifact":{"id":"c","type":"text","content":"x"},"append":false,"last_chunk":false`,
			`"artifact":{"id":"known","type":"text","content":"x"},"append":true,"last_chunk":false`,
		} {
			rep, err := s.Event("event/task.artifact", []byte(`{"task_id":"t",`+event+`}`))
			if err != nil {
				t.Fatal(err)
			}
			for _, chunk := range rep.Chunks {
				got = append(got, fmt.Sprint(chunk.Product.ID, " ", chunk.Append, " ", chunk.Last))
			}
		}
		want := []string{"a false true", "b false false", "b true true", "c false false", "known true false"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: id, append, last (-want +got):\n%s", name, diff)
		}
	}
}
