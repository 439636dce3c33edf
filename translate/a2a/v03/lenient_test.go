// SPDX-License-Identifier: Apache-2.0

package v03_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/a2atest"
)

// laterEvents are the events of an agent with 0.3's methods and 1.0's words, each behind a record separator.
var laterEvents = []string{
	`{"jsonrpc":"2.0","id":null,"result":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_SUBMITTED"}}}`,
	`{"jsonrpc":"2.0","id":0,"result":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"the caller's"}]}}`,
	`{"jsonrpc":"2.0","id":"mine","result":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"thinking"}]}}`,
	`{"result":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_INPUT_REQUIRED","message":{` +
		`"role":"ROLE_AGENT","parts":[{"url":"https://f.example/","filename":"f","mediaType":"m"},{"raw":"eA=="},` +
		`{"data":{"a":1}},{"url":"u","kind":"video"},{"raw":"_"}]}}}}`,
}

// TestLenientWords: an answer by 0.3's methods in 1.0's words is read.
//
// Lenient: 1.0's words for roles and parts, or no `kind`
// Lenient: 1.0's words for roles and parts, or no `kind`
// Lenient: a byte order mark, or a record separator before JSON
// Lenient: `[DONE]` at the end of a stream
func TestLenientWords(t *testing.T) {
	var got string
	s := a2a.V03().For(translate.Query{ID: "r-1", Turn: true}).NewStream(nil)
	for _, ev := range laterEvents {
		got += a2atest.Show(s.Event("message", []byte("\x1e"+ev)))
	}
	got += a2atest.Show(s.Event("message", []byte("[DONE]")))
	const want = `report whole accepted (TASK_STATE_SUBMITTED) task=t session=c
report
report working (message)
  says {"id":"","dataItems":[{"type":"text","text":"thinking"}]}
report awaiting-input (TASK_STATE_INPUT_REQUIRED)
  says {"id":"","dataItems":[{"type":"file","name":"f","mimeType":"m","uri":"https://f.example/"},` +
		`{"type":"file","bytes":"eA=="},{"type":"data","data":{"a":1}},` +
		`{"type":"data","data":{"url":"u","kind":"video"}},{"type":"data","data":{"raw":"_"}}]}
report last
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	rep, err := a2a.V03().For(translate.Query{ID: "r-1"}).Reply([]byte("\x1e"+laterEvents[0]), nil)
	if err != nil || rep.State != task.Accepted {
		t.Errorf("an answer: %+v, %v", rep, err)
	}
}

// TestLenientIDs: an answer may have any id but that of another request of the gateway.
func TestLenientIDs(t *testing.T) {
	const result = `"result":{"id":"t","status":{"state":"working"}}`
	for in, other := range map[string]bool{
		`{"id":null,` + result + `}`: false, `{"id":0,` + result + `}`: false, `{"id":"mine",` + result + `}`: false,
		`{` + result + `}`: false, `{"id":"r-2",` + result + `}`: true,
		`{"id":null,"result":{"id":"u","status":{"state":"working"}}}`: true,
	} {
		c := a2a.V03().For(translate.Query{ID: "r-1", Task: "t"})
		_, err := c.Reply([]byte(in), nil)
		_, bad := c.NewStream(nil).Event("", []byte(in))
		if errors.Is(err, translate.ErrOtherAnswer) != other || errors.Is(bad, translate.ErrOtherAnswer) != other ||
			!other && (err != nil || bad != nil) {
			t.Errorf("%s: %v; as an event: %v", in, err, bad)
		}
	}
}

// TestLenientArtifacts: an artifact without content is no product, and takes no content away. An artifact of a later
// turn under the id of an earlier one is a product of the later turn.
//
// Lenient: an empty artifact
// Lenient: an artifact of a later turn with the id of an earlier one
func TestLenientArtifacts(t *testing.T) {
	event := func(artifact string) string {
		return `{"result":{"kind":"artifact-update","taskId":"t","contextId":"c",` + artifact + `}}`
	}
	var got string
	s := a2a.V03().NewStream(nil)
	for _, in := range []string{
		event(`"artifact":{"artifactId":"e","parts":[]}`),
		event(`"artifact":{"artifactId":"a","parts":[{"text":"1"}]},"append":true`), // after an ended task
		event(`"artifact":{"artifactId":"a","parts":[{"text":""}]},"lastChunk":true`),
		event(`"artifact":{"artifactId":"e","parts":[{"text":"2"}]},"append":true`),
		event(`"artifact":{"artifactId":"n","name":"n","parts":[]}`),
		`{"result":{"kind":"task","id":"t","contextId":"c","status":{"state":"working"},"artifacts":[{"artifactId":"x"},` +
			`{"artifactId":"a","parts":[{"text":"1"}]}]}}`,
	} {
		got += a2atest.Show(s.Event("", []byte(in)))
	}
	const want = `report task=t session=c
report
  chunk append=false last=false {"id":"a","dataItems":[{"type":"text","text":"1"}]}
report
  chunk append=true last=true {"id":"a","dataItems":[{"type":"text","text":""}]}
report
  chunk append=false last=false {"id":"e","dataItems":[{"type":"text","text":"2"}]}
report
  chunk append=false last=false {"id":"n","name":"n","dataItems":[]}
report whole working (working)
  product {"id":"a","dataItems":[{"type":"text","text":"1"}]}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// After a question the task goes on, and so do its artifacts.
	known := []task.Product{{ID: "a", DataItems: []task.DataItem{task.Text("1")}}}
	rep, err := a2a.V03().NewStream(known).Event("", []byte(event(`"artifact":{"artifactId":"a","parts":[]}`)))
	if err != nil || !strings.Contains(a2atest.Show(rep, err), `append=true`) {
		t.Errorf("an empty artifact takes the content away: %s", a2atest.Show(rep, err))
	}
}

// TestLenientErrors: an error in a stream without an envelope is reported in the agent's words.
//
// Lenient: in a stream, a text named `error`, or an error without the envelope
func TestLenientErrors(t *testing.T) { a2atest.InformalErrors(t, a2a.V03()) }
