// SPDX-License-Identifier: Apache-2.0

package v03_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/a2atest"
)

func TestStream(t *testing.T) {
	status := func(id, state string) a2atest.Event {
		return a2atest.Event{Data: []byte(`{"result":{"kind":"status-update","taskId":"` + id +
			`","contextId":"c","status":{"state":"` + state + `"},"final":false}}`)}
	}
	artifact := func(members string) a2atest.Event {
		return a2atest.Event{Data: []byte(`{"result":{"kind":"artifact-update","taskId":"t","contextId":"c",` +
			members + `}}`)}
	}
	message := func(role, text string) a2atest.Event {
		return a2atest.Event{Data: []byte(`{"result":{"kind":"message","messageId":"m","role":"` + role +
			`","parts":[{"kind":"text","text":"` + text + `"}]}}`)}
	}
	chunk := func(id, text string, adds, last bool) string {
		return fmt.Sprintf("  chunk append=%t last=%t {\"id\":%q,\"dataItems\":[{\"type\":\"text\",\"text\":%q}]}\n",
			adds, last, id, text)
	}
	known := []task.Product{{ID: "old"}}
	for _, tc := range []struct {
		name string
		in   []a2atest.Event
		want string
	}{
		{"ids are reported once",
			[]a2atest.Event{{Data: []byte(whole(`"status":{"state":"submitted"}`))}, status("t", "working"),
				status("t", "input-required")},
			"report whole accepted (submitted) task=t session=c\nreport working (working)\nreport awaiting-input " +
				"(input-required) on-the-way\n"},
		{"a failure under another id", []a2atest.Event{status("t", "working"), status("other", "failed")},
			"report working (working) task=t session=c\nreport failed (failed) provisional\n"},
		{"a failure as a task",
			[]a2atest.Event{status("t", "working"), {Data: []byte(whole(`"status":{"state":"failed"}`))}},
			"report working (working) task=t session=c\nreport whole failed (failed)\n"},
		{"no kind", []a2atest.Event{{Data: []byte(`{"result":{"taskId":"t","status":{"state":"working"}}}`)},
			{Data: []byte(`{"result":{"taskId":"t","artifact":{"artifactId":"a","parts":[{"text":"1"}]}}}`)}},
			"report working (working) task=t session=\nreport\n" + chunk("a", "1", false, false)},
		{"a kind and nothing else",
			[]a2atest.Event{{Data: []byte(`{"result":{"kind":"status-update","status":{"state":"working"}}}`)}},
			"report working (working)\n"},
		{"append stands on the event", []a2atest.Event{
			artifact(`"append":true,"artifact":{"artifactId":"a","parts":[{"text":"1"}]}`),
			artifact(`"append":true,"lastChunk":true,"artifact":{"artifactId":"a","parts":[{"text":"2"},{"text":"3"}]}`),
			artifact(`"append":false,"artifact":{"artifactId":"a","parts":[{"text":"4"}]}`),
			artifact(`"artifact":{"artifactId":"a","append":true,"parts":[{"text":"5"}]}`),
			artifact(`"append":true,"artifact":{"artifactId":"old","parts":[{"text":"6"}]}`),
		}, "report task=t session=c\n" + chunk("a", "1", false, false) + "report\n" + chunk("a", "23", true, true) +
			"report\n" + chunk("a", "4", false, false) +
			"report\n" + chunk("a", "5", true, false) + "report\n" + chunk("old", "6", true, false)},
		{"after a task",
			[]a2atest.Event{{Data: []byte(whole(`"status":{"state":"working"},"artifacts":[{"artifactId":"a",` +
				`"parts":[{"text":"1"}]}]`))},
				artifact(`"append":true,"artifact":{"artifactId":"a","parts":[{"text":"2"}]}`)},
			"report whole working (working) task=t session=c\n  product {\"id\":\"a\",\"dataItems\":[{\"type\":\"text\"," +
				"\"text\":\"1\"}]}\nreport\n" +
				chunk("a", "2", true, false)},
		{"a message alone", []a2atest.Event{message("agent", "hi")},
			"report whole awaiting-completion (message) provisional\n  product {\"id\":\"m\",\"dataItems\":[" +
				"{\"type\":\"text\",\"text\":\"hi\"}]}\n"},
		{"a message without parts", []a2atest.Event{{Data: []byte(`{"result":{"messageId":"m","parts":{}}}`)}},
			"error invalid-agent-response: the agent's answer has parts that are no array\n"},
		{"a long context", []a2atest.Event{{Data: []byte(`{"result":{"messageId":"m","contextId":"` +
			strings.Repeat("c", 257) + `"}}`)}},
			"error invalid-agent-response: the agent's answer has an id of more than 256 bytes\n"},
		{"a message of a task without parts",
			[]a2atest.Event{status("t", "working"), {Data: []byte(`{"result":{"messageId":"m","parts":{}}}`)}},
			"report working (working) task=t session=c\nerror invalid-agent-response: the agent's answer has parts that are " +
				"no array\n"},
		{"an artifact that is no object", []a2atest.Event{artifact(`"artifact":1`)},
			"error invalid-agent-response: the agent's answer has an artifact that is no object\n"},
		{"a status of no known state", []a2atest.Event{status("t", "x")},
			"error invalid-agent-response: the agent's answer has the state \"x\", which A2A 0.3 does not have\n"},
		{"a message of a task", []a2atest.Event{status("t", "submitted"), message("agent", "hi"), message("user", "x")},
			"report accepted (submitted) task=t session=c\nreport working (message)\n  says {\"id\":\"\"," +
				"\"dataItems\":[{\"type\":\"text\",\"text\":\"hi\"}]}\nreport\n"},
		{"both at once",
			[]a2atest.Event{artifact(`"artifact":{"artifactId":"a","parts":[{"text":"1"}]},"status":{"state":"completed"}`)},
			"report awaiting-completion (completed) task=t session=c\n" + chunk("a", "1", false, false)},
		{"what means nothing", []a2atest.Event{{}, {Name: "ping", Data: []byte("2026")},
			{Name: "message", Data: []byte(`{"result":{}}`)}}, "report\nreport\nreport\n"},
		{"an error that is a text", []a2atest.Event{{Name: "error", Data: []byte(`x`)}},
			"error internal: the agent reports an error: x\n"},
		{"no object", []a2atest.Event{{Name: "message", Data: []byte(`{"result":1}`)}},
			"error invalid-agent-response: the agent's answer has a result that is no object\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := a2a.V03().NewStream(known)
			var got string
			for _, ev := range tc.in {
				got += a2atest.Show(s.Event(ev.Name, ev.Data))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A stream of a task and a poll of the pieces listed by the agent make the same products.
func TestStreamAndPollAgree(t *testing.T) {
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		var fold task.Fold
		fold.Apply(task.Event{Seq: 1, Task: &task.Task{}})
		stream := a2a.V03().NewStream(nil)
		var list []string
		began := map[int]bool{}
		for range 1 + rnd.IntN(12) {
			id := rnd.IntN(3)
			adds := began[id] && rnd.IntN(4) > 0
			began[id] = true
			var parts []string
			for range rnd.IntN(4) {
				parts = append(parts,
					[...]string{`{"kind":"text","text":"x"}`, `{"kind":"text","text":"y","metadata":{"k":1}}`,
						`{"kind":"data","data":{}}`}[rnd.IntN(3)])
			}
			members := fmt.Sprintf(`"artifactId":"%d","parts":[%s]`, id, strings.Join(parts, ","))
			list = append(list, fmt.Sprintf(`{"append":%t,%s}`, adds, members))
			rep, err := stream.Event("",
				[]byte(fmt.Sprintf(`{"result":{"taskId":"t","append":%t,"artifact":{%s}}}`, adds, members)))
			if err != nil {
				t.Fatal(err)
			}
			for i := range rep.Chunks {
				fold.Apply(task.Event{Seq: fold.Seq + 1, Chunk: &rep.Chunks[i]})
			}
			poll, err := a2a.V03().Reply([]byte(whole(`"status":{"state":"working"},"artifacts":[`+
				strings.Join(list, ",")+`]`)), nil)
			if err != nil {
				t.Fatal(err)
			}
			if chunks := task.Diff(fold.Task().Products, poll.Products); len(chunks) > 0 {
				t.Fatalf("seed %d, after %s: a poll reports %+v, a stream %+v", seed, list, poll.Products,
					fold.Task().Products)
			}
		}
	}
}

func FuzzStream(f *testing.F) {
	a2atest.Seeds(f, captures, ".sse")
	f.Add([]byte("event: error\ndata: {\"result\":{\"artifact\":{\"append\":true,\"parts\":[{}]}}}\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		s := a2a.V03().NewStream([]task.Product{{ID: "a"}})
		for _, ev := range a2atest.Events(stream) {
			rep, err := s.Event(ev.Name, ev.Data)
			a2atest.Check(t, rep, err)
			if err != nil {
				return
			}
		}
	})
}
