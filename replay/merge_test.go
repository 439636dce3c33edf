// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"cmp"
	"errors"
	"iter"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
)

// TestMerge: the values of several sequences come in order, up to the first error, and none is read further than
// needed.
func TestMerge(t *testing.T) {
	broken := errors.New("broken")
	read := 0
	seq := func(fails bool, values ...int) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			for _, v := range values {
				if read++; !yield(v, nil) {
					return
				}
			}
			if fails {
				yield(0, broken)
			}
		}
	}
	for name, c := range map[string]struct {
		all   []iter.Seq2[int, error]
		stop  int // after so many values; 0 for never
		want  []int
		fails bool
		most  int // values allowed to be read
	}{
		"none": {nil, 0, nil, false, 0},
		"one":  {[]iter.Seq2[int, error]{seq(false, 1, 2)}, 0, []int{1, 2}, false, 2},
		"several": {[]iter.Seq2[int, error]{seq(false, 1, 4), seq(false), seq(false, 2, 3, 5)}, 0,
			[]int{1, 2, 3, 4, 5}, false, 5},
		"equal":          {[]iter.Seq2[int, error]{seq(false, 1), seq(false, 1)}, 0, []int{1, 1}, false, 2},
		"stopped":        {[]iter.Seq2[int, error]{seq(false, 1, 4), seq(false, 2, 3, 5)}, 2, []int{1, 2}, false, 3},
		"an error":       {[]iter.Seq2[int, error]{seq(false, 1, 4), seq(true, 2)}, 0, []int{1, 2}, true, 3},
		"an error first": {[]iter.Seq2[int, error]{seq(true), seq(false, 2)}, 0, nil, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			read = 0
			var got []int
			var failed error
			for v, err := range replay.Merge(cmp.Compare[int], c.all...) {
				if failed = err; err != nil {
					break
				}
				if got = append(got, v); len(got) == c.stop {
					break
				}
			}
			if diff := gocmp.Diff(c.want, got); diff != "" || errors.Is(failed, broken) != c.fails {
				t.Errorf("the error is %v (-want +got):\n%s", failed, diff)
			}
			if read > c.most {
				t.Errorf("%d values were read, want at most %d", read, c.most)
			}
			if !slices.IsSorted(got) {
				t.Error("the values are in no order")
			}
		})
	}
}
