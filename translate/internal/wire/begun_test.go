// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strconv"
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
)

// TestBegun: a piece for a missing product begins it, and those after it are added.
func TestBegun(t *testing.T) {
	b := NewBegun([]task.Product{{ID: "known"}})
	read := func(id string, adds bool) bool {
		chunks := []task.Chunk{{Product: task.Product{ID: id}, Append: adds}}
		b.Read(nil, chunks)
		return chunks[0].Append
	}
	for _, tc := range []struct {
		id         string
		adds, want bool
	}{
		{"known", true, true}, {"new", true, false}, {"new", true, true}, {"new", false, false}, {"other", false, false},
		{"other", true, true},
	} {
		if got := read(tc.id, tc.adds); got != tc.want {
			t.Errorf("a piece of %s that is added (%v) is added: %v", tc.id, tc.adds, got)
		}
	}
	if b.Has([]byte("unknown")) || !b.Has([]byte("new")) {
		t.Error("which products exist is not known")
	}
	b.Read([]task.Product{{ID: "whole"}}, nil)
	if !read("whole", true) {
		t.Error("a piece of a product that was sent whole begins it")
	}
	for i := range 2 * maxBegun {
		read(strconv.Itoa(i), false)
	}
	if len(b.ids) != maxBegun || !read("too many", true) {
		t.Errorf("%d products are known, and others are not what the agent says", len(b.ids))
	}
}
