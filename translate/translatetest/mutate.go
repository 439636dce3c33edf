// SPDX-License-Identifier: Apache-2.0

package translatetest

import (
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
	var root any
	if err := json.Unmarshal(original, &root); err != nil {
		t.Fatal(err)
	}
	render := func() {
		body, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		try(body)
	}
	var walk func(node any)
	walk = func(node any) {
		switch node := node.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(node)) {
				was := node[key]
				for _, v := range values {
					node[key] = v
					render()
				}
				delete(node, key)
				render()
				node[key] = was
				walk(was)
			}
		case []any:
			for i, was := range node {
				for _, v := range values {
					node[i] = v
					render()
				}
				node[i] = was
				walk(was)
			}
		}
	}
	walk(root)
}
