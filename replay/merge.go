// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"iter"
	"slices"
)

// Merge yields the values of several sequences in one order. Each sequence is in this order itself. It ends at the
// first error.
func Merge[T any](compare func(a, b T) int, all ...iter.Seq2[T, error]) iter.Seq2[T, error] {
	if len(all) == 1 {
		return all[0]
	}
	return func(yield func(T, error) bool) {
		type source struct {
			next  func() (T, error, bool)
			value T
		}
		var sources []*source
		advance := func(i int) error { // an ended source is left out
			v, err, ok := sources[i].next()
			if sources[i].value = v; !ok {
				sources = slices.Delete(sources, i, i+1)
			}
			return err
		}
		var zero T
		for _, seq := range all {
			next, stop := iter.Pull2(seq)
			defer stop()
			sources = append(sources, &source{next: next})
			if err := advance(len(sources) - 1); err != nil {
				yield(zero, err)
				return
			}
		}
		for len(sources) > 0 {
			first := 0
			for i := range sources {
				if compare(sources[i].value, sources[first].value) < 0 {
					first = i
				}
			}
			if !yield(sources[first].value, nil) {
				return
			}
			if err := advance(first); err != nil {
				yield(zero, err)
				return
			}
		}
	}
}
