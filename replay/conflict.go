// SPDX-License-Identifier: Apache-2.0

package replay

import "errors"

// attempts is the number of times a write is decided before its writer gives up.
const attempts = 8

// RetryConflict calls f until it returns another error than ErrConflict, or none, but a few times only. f reads a log,
// or knows it, decides by its content, and appends; after a conflict it must read the log again.
func RetryConflict(f func() error) error {
	for attempt := 1; ; attempt++ {
		if err := f(); attempt == attempts || !errors.Is(err, ErrConflict) {
			return err
		}
	}
}
