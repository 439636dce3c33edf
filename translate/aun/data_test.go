// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"math/rand/v2"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

// TestData: the value of a json content, or of a json payload, is written as it was read.
func TestData(t *testing.T) {
	for seed := range uint64(3000) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		content := map[string]any{"type": "json", "content": translatetest.Value(rnd, 3)}
		metadata := translatetest.Metadata(rnd)
		if _, object := content["content"].(map[string]any); object && seed%3 == 0 {
			metadata = translatetest.Marked(metadata)
		}
		if metadata != nil {
			content["metadata"] = metadata
		}
		body := translatetest.AsJSON(content)
		items, ok := ReadContent(gjson.ParseBytes(body))
		if !ok || len(items) != 1 {
			t.Fatalf("%s is read as %+v", body, items)
		}
		translatetest.SameJSON(t, body, AppendContent(nil, items))

		body = translatetest.AsJSON(map[string]any{"type": "json", "data": content["content"], "task_id": "t"})
		p, ok := ReadPayload(gjson.ParseBytes(body))
		if !ok || len(p.Items) != 1 {
			t.Fatalf("%s is read as %+v", body, p)
		}
		translatetest.SameJSON(t, []byte(gjson.GetBytes(body, "data").Raw),
			[]byte(gjson.GetBytes(AppendPayload(nil, &p.Items[0], "t", ""), "data").Raw))

		it := translatetest.DataItem(rnd)
		items, ok = ReadContent(gjson.ParseBytes(AppendContent(nil, append(items[:0], it))))
		if !ok || len(items) != 1 {
			t.Fatalf("%s is read as %+v", it.Data, items)
		}
		translatetest.SameJSON(t, it.Data, items[0].Data)
	}
}
