// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"reflect"
	"testing"

	"math/rand/v2"
)

// BenchmarkCall measures the cost of writing and reading a call.
func BenchmarkCall(b *testing.B) {
	var q request
	fill(rand.New(rand.NewPCG(1, 2)), reflect.ValueOf(&q).Elem(), 12)
	data := encode(nil, &q)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		data = encode(data[:0], &q)
		var got request
		if _, err := decode(data, &got); err != nil {
			b.Fatal(err)
		}
	}
}
