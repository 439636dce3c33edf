// SPDX-License-Identifier: Apache-2.0

package replay

import "context"

// InPages yields the results of read, a page at a time, as long as read reports more. The page passed to read is empty,
// the one before to be used again. It is for drivers.
func InPages[T any](ctx context.Context, yield func(T, error) bool, read func(page []T) (_ []T, more bool, err error)) {
	var none T
	var page []T
	for more := true; more; {
		var err error
		if page, more, err = read(page[:0]); err != nil {
			yield(none, err)
			return
		}
		for _, v := range page {
			if err := ctx.Err(); err != nil {
				yield(none, err)
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}
