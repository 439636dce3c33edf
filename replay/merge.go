// SPDX-License-Identifier: Apache-2.0

package replay

import "iter"

// Merge yields what several sequences yield, each of which is in an order, in that order. It ends at the first error.
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
		advance := func(i int) (bool, error) {
			v, err, ok := sources[i].next()
			sources[i].value = v
			return ok, err
		}
		var zero T
		for _, seq := range all {
			next, stop := iter.Pull2(seq)
			defer stop()
			sources = append(sources, &source{next: next})
			switch ok, err := advance(len(sources) - 1); {
			case err != nil:
				yield(zero, err)
				return
			case !ok:
				sources = sources[:len(sources)-1]
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
			switch ok, err := advance(first); {
			case err != nil:
				yield(zero, err)
				return
			case !ok:
				sources = append(sources[:first], sources[first+1:]...)
			}
		}
	}
}
