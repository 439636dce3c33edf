// SPDX-License-Identifier: Apache-2.0

package legacy_test

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
	art := func(members string) string { return `{"result":{"id":"t","artifact":{` + members + `}}}` }
	known := []task.Product{{ID: "artifact-0-old", Name: "old"}}
	for _, tc := range []struct {
		name string
		in   []a2atest.Event
		want string
	}{
		{"names do not count", []a2atest.Event{
			{Name: "message", Data: []byte(`{"result":{"id":"t","status":{"state":"working"},"final":false}}`)},
			{Name: "task_artifact_update",
				Data: []byte(`{"result":{"id":"t","status":{"state":"completed"},"final":true}}`)},
			{Name: "task_status_update", Data: []byte(art(`"parts":[{"text":"a"}]`))},
		}, "report working (working)\nreport awaiting-completion (completed)\nreport\n  chunk append=false last=false " +
			"{\"id\":\"artifact-0\",\"dataItems\":[{\"type\":\"text\",\"text\":\"a\"}]}\n"},
		{"what means nothing", []a2atest.Event{
			{Name: "close", Data: []byte(`{"result":{"taskId":"t","reason":"x"}}`)}, {Name: "message"},
			{Name: "ping", Data: []byte(`2026-01-01`)}, {Name: "message", Data: []byte(`{"result":{}}`)},
			{Name: "close", Data: []byte(`x`)},
		}, "report\nreport\nreport\nreport\nreport\n"},
		{"ids do not count", []a2atest.Event{{Name: "message",
			Data: []byte(`{"id":"other","result":{"id":1,"status":{"state":"completed"},"final":true}}`)}},
			"report awaiting-completion (completed)\n"},
		{"a chunk of what is not there begins it",
			[]a2atest.Event{{Data: []byte(art(`"name":"a","append":true,"parts":[{"text":"1"}]`))},
				{Data: []byte(art(`"append":true,"lastChunk":true,"parts":[{"text":"2"}]`))}},
			"report\n  chunk append=false last=false {\"id\":\"artifact-0-a\",\"name\":\"a\"," +
				"\"dataItems\":[{\"type\":\"text\",\"text\":\"1\"}]}\n" +
				"report\n  chunk append=true last=true {\"id\":\"artifact-0-a\",\"dataItems\":[{\"type\":\"text\",\"text\":\"2\"}" +
				"]}\n"},
		{"a chunk of an earlier turn's product",
			[]a2atest.Event{{Data: []byte(art(`"append":true,"parts":[{"text":"1"}]`))}},
			"report\n  chunk append=true last=false {\"id\":\"artifact-0-old\",\"dataItems\":[{\"type\":\"text\"," +
				"\"text\":\"1\"}]}\n"},
		{"without index and name, another one each time", []a2atest.Event{
			{Data: []byte(art(`"parts":"a"`))}, {Data: []byte(art(`"parts":"b"`))},
			{Data: []byte(art(`"append":true,"parts":"c"`))}, {Data: []byte(art(`"index":0,"parts":"d"`))},
			{Data: []byte(art(`"name":"n","parts":"e"`))}, {Data: []byte(art(`"name":"n","parts":"f"`))},
			{Data: []byte(art(`"name":"old","parts":"g"`))}, {Data: []byte(art(`"parts":"h"`))},
		}, pieces("artifact-0 a", "artifact-0-2 b", "artifact-0-2+c", "artifact-0-2 d", "artifact-0-n e", "artifact-0-n f",
			"artifact-0-old g", "artifact-0-3 h")},
		{"a Task with two of an id, and what follows", []a2atest.Event{
			{Data: []byte(whole(`"status":{"state":"working"},"artifacts":["a","b"]`))},
			{Data: []byte(art(`"append":true,"parts":"c"`))}, {Data: []byte(art(`"index":0,"parts":"d"`))},
			{Data: []byte(art(`"parts":"e"`))},
		}, "report whole working (working)\n" + texts("artifact-0", "", "a") + texts("artifact-0-2", "", "b") +
			pieces("artifact-0-2+c", "artifact-0-2 d", "artifact-0-3 e")},
		{"a Task in place of an event", []a2atest.Event{
			{Data: []byte(whole(`"status":{"state":"working"},"artifacts":[{"name":"a","parts":[{"text":"1"}]}]`))},
			{Data: []byte(art(`"append":true,"parts":[{"text":"2"}]`))},
		}, "report whole working (working)\n  product {\"id\":\"artifact-0-a\",\"name\":\"a\"," +
			"\"dataItems\":[{\"type\":\"text\",\"text\":\"1\"}]}\n" +
			"report\n  chunk append=true last=false {\"id\":\"artifact-0-a\",\"dataItems\":[{\"type\":\"text\",\"text\":\"2\"}" +
			"]}\n"},
		{"words of its own", []a2atest.Event{
			{Data: []byte(`{"result":{"id":"t","status":{"state":"dancing"},"final":false}}`)},
			{Data: []byte(`{"result":{"id":"t","status":"FINISHED","final":true}}`)},
		}, "report working (dancing)\nreport awaiting-completion (FINISHED)\n"},
		{"settled, and not final", []a2atest.Event{
			{Data: []byte(`{"result":{"id":"t","status":{"state":"completed"},"final":false}}`)},
			{Data: []byte(`{"result":{"id":"t","status":{"state":"input-required"}}}`)},
			{Name: "task_status_update", Data: []byte(`{"result":{"id":"t","status":{"state":"input-required"}}}`)},
			{Data: []byte(whole(`"status":{"state":"failed"}`))},
			{Data: []byte(`{"result":{"id":"t","status":{"state":"auth-required"},"final":false}}`)},
			{Data: []byte(`{"result":{"id":"t","status":{"state":"completed"},"final":true}}`)},
		}, "report awaiting-completion (completed) provisional\n" +
			"report whole awaiting-input (input-required) provisional\n" +
			"report whole awaiting-input (input-required)\nreport whole failed (failed) provisional\n" +
			"report awaiting-input (auth-required) open\n  says {\"id\":\"\"," +
			"\"dataItems\":[{\"type\":\"data\",\"data\":{\"a2aState\":\"auth-required\"}}]}\n" +
			"report awaiting-completion (completed)\n"},
		{"the end of a stream, in the middle of a turn", []a2atest.Event{
			{Data: []byte(`{"result":{"id":"t","status":{"state":"working"},"final":true}}`)},
			{Name: "message", Data: []byte(` [DONE]`)},
			{Data: []byte(`{"result":{"id":"t","status":{"state":"auth-required"},"final":true}}`)},
		}, "report working (working) last\nreport last\nreport awaiting-input (auth-required) open\n" +
			"  says {\"id\":\"\",\"dataItems\":[{\"type\":\"data\",\"data\":{\"a2aState\":\"auth-required\"}}]}\n"},
		{"both at once",
			[]a2atest.Event{{Data: []byte(`{"result":{"artifact":{"parts":[{"text":"1"}]},"status":{"state":"completed"}}}`)}},
			"report awaiting-completion (completed) provisional\n  chunk append=false last=false {\"id\":\"artifact-0\"," +
				"\"dataItems\":[{\"type\":\"text\",\"text\":\"1\"}]}\n"},
		{"not JSON", []a2atest.Event{{Name: "message", Data: []byte(`x`)}},
			"error invalid-agent-response: the agent's answer is no JSON-RPC response: a JSON value is expected\n"},
		{"no object", []a2atest.Event{{Name: "message", Data: []byte(`{"result":1}`)}},
			"error invalid-agent-response: the agent's answer has a result that is no object\n"},
		{"an artifact that is no object",
			[]a2atest.Event{{Name: "message", Data: []byte(`{"result":{"artifact":[]}}`)}},
			"error invalid-agent-response: the agent's answer has an artifact that is no object\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := a2a.Legacy().NewStream(known)
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

// pieces shows reports of a piece of text each: the id of the product, "+" if it is added, or a space, and the text.
func pieces(all ...string) string {
	var b strings.Builder
	for _, p := range all {
		i := strings.IndexAny(p, "+ ")
		name := strings.TrimLeft(strings.TrimPrefix(p[:i], "artifact-0"), "-0123456789")
		if p[i] == '+' {
			name = ""
		}
		b.WriteString(fmt.Sprintf("report\n  chunk append=%t last=false ", p[i] == '+') +
			strings.TrimPrefix(texts(p[:i], name, p[i+1:]), "  product "))
	}
	return b.String()
}

// The products of a turn come out the same by its stream, by a poll, or by a cut stream and a later poll, and over any
// number of turns.
func TestStreamAndPollAgree(t *testing.T) {
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var chunks []string
		begins := map[int]bool{}  // the chunks at the begin of a turn
		touched := map[int]bool{} // the indexes touched by a turn
		for n := range 1 + rnd.IntN(12) {
			if n > 0 && rnd.IntN(4) == 0 {
				begins[n] = true
				clear(touched)
			}
			index, adds, name := rnd.IntN(2), rnd.IntN(3) > 0, rnd.IntN(4)
			// Over turns, nothing shows the last touched one, so a nameless chunk says nothing there.
			if len(begins) > 0 && adds && name == 0 && !touched[index] {
				name = 1
			}
			touched[index] = true
			chunk := fmt.Sprintf(`{"index":%d,"append":%t,"lastChunk":%t,"parts":[`, index, adds, rnd.IntN(2) > 0)
			for i := range rnd.IntN(3) {
				if i > 0 {
					chunk += ","
				}
				chunk += [...]string{`{"type":"text","text":"x"}`, `{"type":"text","text":"y","metadata":{"k":1}}`,
					`{"type":"data","data":{}}`}[rnd.IntN(3)]
			}
			chunk += "]"
			if name > 0 {
				chunk += fmt.Sprintf(`,"name":"n%d"`, name)
			}
			chunks = append(chunks, chunk+"}")
		}
		var order []string                  // the ids of the products
		listed := make(map[string][]string) // the pieces of each in a Task's list, without replaced ones
		poll := func() []task.Product {
			var list []string
			for _, id := range order {
				list = append(list, listed[id]...)
			}
			rep, err := a2a.Legacy().Reply([]byte(whole(`"status":{"state":"working"},"artifacts":[`+
				strings.Join(list, ",")+`]`)), nil)
			if err != nil {
				t.Fatal(err)
			}
			return rep.Products
		}
		var fold task.Fold
		fold.Apply(task.Event{Seq: 1, Task: &task.Task{}})
		apply := func(list []task.Chunk) {
			for i := range list {
				fold.Apply(task.Event{Seq: fold.Seq + 1, Chunk: &list[i]})
			}
		}
		stream := a2a.Legacy().NewStream(nil)
		for i, c := range chunks {
			if begins[i] {
				stream = a2a.Legacy().NewStream(fold.Task().Products)
			}
			rep, err := stream.Event("", []byte(`{"result":{"artifact":`+c+`}}`))
			if err != nil {
				t.Fatal(err)
			}
			if len(rep.Chunks) == 0 { // it is empty
				continue
			}
			apply(rep.Chunks)
			if id := rep.Chunks[0].Product.ID; rep.Chunks[0].Append {
				listed[id] = append(listed[id], c)
			} else {
				if listed[id] == nil {
					order = append(order, id)
				}
				listed[id] = []string{c}
			}
			if diff := cmp.Diff(poll(), fold.Task().Products); diff != "" {
				t.Fatalf("seed %d, after %s (-poll +stream):\n%s", seed, strings.Join(chunks[:i+1], "\n"), diff)
			}
		}
	}
}

func FuzzStream(f *testing.F) {
	a2atest.Seeds(f, captures, ".sse")
	f.Add([]byte("event: x\ndata: {\"result\":{\"artifact\":{\"append\":true,\"parts\":[{}]}}}\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		s := a2a.Legacy().NewStream([]task.Product{{ID: "artifact-0-a"}})
		for _, ev := range a2atest.Events(stream) {
			rep, err := s.Event(ev.Name, ev.Data)
			a2atest.Check(t, rep, err)
			if err != nil {
				return
			}
		}
	})
}
