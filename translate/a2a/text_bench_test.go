// SPDX-License-Identifier: Apache-2.0

package a2a_test

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
)

// BenchmarkStreamDecode measures the reading of a piece of text from an agent's stream: by Text, if it is like the
// piece before it, as most are, and if it is not; and by Event, the reader of everything.
func BenchmarkStreamDecode(b *testing.B) {
	const text = `"a piece of a text, as long as a model gives it\n"`
	for _, v := range []struct {
		client translate.Client
		events [3]string // the task, the first piece, and the pieces behind it
	}{
		{a2a.Legacy(), [3]string{
			`{"jsonrpc":"2.0","id":"t","result":{"id":"t","status":{"state":"working"},"final":false}}`,
			`{"jsonrpc":"2.0","id":"t","result":{"id":"t","artifact":{"parts":[{"type":"text","text":"a"}],"index":0}}}`,
			`{"jsonrpc":"2.0","id":"t","result":{"id":"t","artifact":{"name":null,"description":null,"parts":[{"type":"text",` +
				`"text":` + text + `,"metadata":null}],"index":0,"append":true,"lastChunk":false,"metadata":null}}}`,
		}},
		{a2a.V03(), [3]string{
			`{"id":"1","jsonrpc":"2.0","result":{"contextId":"c","id":"t","kind":"task","status":{"state":"working"}}}`,
			`{"id":"1","jsonrpc":"2.0","result":{"artifact":{"artifactId":"a","parts":[{"kind":"text","text":"a"}]},` +
				`"contextId":"c","kind":"artifact-update","taskId":"t"}}`,
			`{"id":"1","jsonrpc":"2.0","result":{"append":true,"artifact":{"artifactId":"a","name":"answer","parts":[` +
				`{"kind":"text","text":` + text + `}]},"contextId":"c","kind":"artifact-update","lastChunk":false,"taskId":"t"}}`,
		}},
		{a2a.V1(), [3]string{
			`{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"a",` +
				`"parts":[{"text":"a"}]}}}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"a",` +
				`"name":"answer","parts":[{"text":` + text + `}]},"append":true}}}`,
		}},
	} {
		begin := func(b *testing.B) translate.Stream {
			s := v.client.NewStream(nil)
			for _, ev := range v.events[:2] {
				if _, err := s.Event("message", []byte(ev)); err != nil {
					b.Fatal(err)
				}
			}
			return s
		}
		one := []byte(v.events[2])
		b.Run(v.client.Name()+"/text", func(b *testing.B) {
			s := begin(b).(translate.TextStream)
			var pieces task.Pieces
			b.ReportAllocs()
			for b.Loop() {
				if pieces.Len() == 100 {
					pieces.Reset()
				}
				if !s.Text("message", one, &pieces) {
					b.Fatal("Text does not take it")
				}
			}
		})
		b.Run(v.client.Name()+"/text unlike the last", func(b *testing.B) {
			s := begin(b).(translate.TextStream)
			events := [2][]byte{one, []byte(" " + v.events[2])}
			var pieces task.Pieces
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if pieces.Len() == 100 {
					pieces.Reset()
				}
				if !s.Text("message", events[i%2], &pieces) {
					b.Fatal("Text does not take it")
				}
			}
		})
		b.Run(v.client.Name()+"/event", func(b *testing.B) {
			s := begin(b)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Event("message", one); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
