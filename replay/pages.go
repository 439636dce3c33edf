// SPDX-License-Identifier: Apache-2.0

package replay

import "context"

// InPages yields what read returns, a page at a time, as long as it says that there is more. The page that read
// is given is empty, and the one before to be used again. It is for drivers.
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
