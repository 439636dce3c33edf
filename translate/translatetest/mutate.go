// SPDX-License-Identifier: Apache-2.0

package translatetest

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// mutatedBytes calls try with bodies made of one by breaking some of its bytes.
func mutatedBytes(original []byte, times int, try func(body []byte)) {
	const alphabet = "\"\\{}[]:,0123456789.eE+-truefalsnx \n\x00\x80\xff"
	rnd := rand.New(rand.NewPCG(1, uint64(len(original))))
	for range times {
		body := slices.Clone(original)
		for range 1 + rnd.IntN(3) {
			i, j := rnd.IntN(len(body)+1), rnd.IntN(len(body)+1)
			i, j = min(i, j), max(i, j)
			switch rnd.IntN(5) {
			case 0:
				if i < len(body) {
					body[i] = alphabet[rnd.IntN(len(alphabet))]
				}
			case 1:
				body = slices.Insert(body, i, alphabet[rnd.IntN(len(alphabet))])
			case 2:
				body = slices.Delete(body, i, j)
			case 3:
				body = slices.Insert(body, i, body[i:j]...)
			case 4:
				body = body[:j]
			}
		}
		try(body)
	}
}

// mutatedValues calls try with bodies made of one by leaving out one of its values, or by putting one of another type
// or size in its place.
func mutatedValues(t *testing.T, original []byte, try func(body []byte)) {
	values := []any{
		nil, true, 0, -1, 1.5, json.Number("1.0"), json.Number("1e999"), "", "x", strings.Repeat("x", 300), "a\u0000b",
		[]any{}, []any{nil}, []any{[]any{}}, map[string]any{}, map[string]any{"type": 1}, map[string]any{"kind": "text"},
	}
	const place = "the place of a value"
	marshal := func(v any) []byte {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	var texts [][]byte
	for _, v := range values {
		texts = append(texts, marshal(v))
	}
	var root any
	if err := json.Unmarshal(original, &root); err != nil {
		t.Fatal(err)
	}
	tryAll := func() { // with place in root; the body around a value is made once for all values
		before, after, _ := bytes.Cut(marshal(root), marshal(place))
		for _, text := range texts {
			try(slices.Concat(before, text, after))
		}
	}
	var walk func(node any)
	walk = func(node any) {
		switch node := node.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(node)) {
				was := node[key]
				node[key] = place
				tryAll()
				delete(node, key)
				try(marshal(root))
				node[key] = was
				walk(was)
			}
		case []any:
			for i, was := range node {
				node[i] = place
				tryAll()
				node[i] = was
				walk(was)
			}
		}
	}
	walk(root)
}
