// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"errors"
	"sync"
)

// First looks for something in some shards at once, and returns the result of look in the first one of them that has
// it. In a shard without it, look returns none. If all shards are without it, First returns none, with the errors of
// look.
func First[T comparable](shards []int, none T, look func(shard int) (T, error)) (T, error) {
	found, errs := make([]T, len(shards)), make([]error, len(shards))
	var looking sync.WaitGroup
	for at, i := range shards {
		looking.Go(func() { found[at], errs[at] = look(i) })
	}
	looking.Wait()
	for at, v := range found {
		if errs[at] == nil && v != none {
			return v, nil
		}
	}
	return none, errors.Join(errs...)
}
