// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/a2atest"
)

// TestLenient: answers of agents of 1.0 in other forms than its own are read, in both bindings.
func TestLenient(t *testing.T) {
	for _, b := range bindings {
		event := func(members string) []byte { return append([]byte{0x1e}, wrap(b.client, `{`+members+`}`)...) }
		var got string
		s := b.client.NewStream([]task.Product{{ID: "k", DataItems: []task.DataItem{task.Text("known")}}})
		for _, in := range [][]byte{
			event(`"task":{"id":"t","contextId":"c","status":{"state":"auth-required"}}`),
			event(`"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"e","parts":[]}}`),
			event(`"artifactUpdate":{"taskId":"t","contextId":"c","append":true,"artifact":{"artifactId":"e",` +
				`"parts":[{"text":"1"}]}}`),
			event(`"artifactUpdate":{"taskId":"t","contextId":"c","lastChunk":true,"artifact":{"artifactId":"k","parts":[]}}`),
			event(`"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"working"}}`),
			event(`"task":{"id":"t","contextId":"c","status":{"state":"working"},"artifacts":[{"artifactId":"x"}]}`),
			[]byte("[DONE]"),
		} {
			got += a2atest.Show(s.Event("message", in))
		}
		const want = `report whole awaiting-input (auth-required) open task=t session=c
  says {"id":"","dataItems":[{"type":"data","data":{"a2aState":"auth-required"}}]}
report
report
  chunk append=false last=false {"id":"e","dataItems":[{"type":"text","text":"1"}]}
report
  chunk append=true last=true {"id":"k","dataItems":[]}
report working (working)
report whole working (working) task=t session=c
report last
`
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", b.name, diff)
		}
	}
}

// TestLenientIDs: an answer may have any id but that of another request of the gateway.
func TestLenientIDs(t *testing.T) {
	const result = `"result":{"task":{"id":"t","status":{"state":"TASK_STATE_WORKING"}}}`
	for in, other := range map[string]bool{
		`{"id":null,` + result + `}`: false, `{"id":"mine",` + result + `}`: false, `{` + result + `}`: false,
		`{"id":"r-2",` + result + `}`: true,
	} {
		c := a2a.V1().For(translate.Query{ID: "r-1", Task: "t"})
		_, err := c.Reply([]byte(in), nil)
		_, bad := c.NewStream(nil).Event("", []byte(in))
		if errors.Is(err, translate.ErrOtherAnswer) != other || errors.Is(bad, translate.ErrOtherAnswer) != other ||
			!other && (err != nil || bad != nil) {
			t.Errorf("%s: %v; as an event: %v", in, err, bad)
		}
	}
}

// TestLenientErrors: an error in a stream in another form than 1.0's is reported in the agent's words.
func TestLenientErrors(t *testing.T) {
	for _, b := range bindings {
		a2atest.InformalErrors(t, b.client)
	}
}
