// SPDX-License-Identifier: Apache-2.0

package group

import "slices"

// queue is a list that is read from its beginning. The zero value is empty.
type queue[T any] struct {
	items []T
	first int
}

func (q *queue[T]) len() int { return len(q.items) - q.first }

func (q *queue[T]) push(v T) { q.items = append(q.items, v) }

// pop removes the first value; there must be one.
func (q *queue[T]) pop() T {
	var none T
	v := q.items[q.first]
	q.items[q.first] = none
	if q.first++; q.first == len(q.items) {
		q.items, q.first = q.items[:0], 0
	} else if q.first >= 64 && q.first >= len(q.items)/2 {
		q.items, q.first = slices.Delete(q.items, 0, q.first), 0
	}
	return v
}
