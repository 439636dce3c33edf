// SPDX-License-Identifier: Apache-2.0

package replay

import "math/rand/v2"

// order is a set of values in their order, as a skip list: the cost of adding a value, removing one, or finding a place
// grows with the logarithm of their number. Compare must be set before the first use.
type order[T any] struct {
	compare func(a, b T) int
	first   [orderLevels]*orderNode[T] // of each level; each level has about a quarter of the nodes of the one below
	size    int
}

type orderNode[T any] struct {
	value T
	next  []*orderNode[T]  // on each level with the node
	one   [1]*orderNode[T] // memory of next for a node on one level, as most are
}

// orderLevels is enough for 4^12 values.
const orderLevels = 12

// before returns, for each level, the place of the pointer to the first node with a value not before v.
func (o *order[T]) before(v T) (at [orderLevels]**orderNode[T]) {
	if first := o.first[0]; first == nil || o.compare(first.value, v) >= 0 { // as for an event of now
		for level := range at {
			at[level] = &o.first[level]
		}
		return at
	}
	next := o.first[:]
	for level := orderLevels - 1; level >= 0; level-- {
		for next[level] != nil && o.compare(next[level].value, v) < 0 {
			next = next[level].next
		}
		at[level] = &next[level]
	}
	return at
}

// add adds a value, or replaces the one equal to it.
func (o *order[T]) add(v T) {
	at := o.before(v)
	if n := *at[0]; n != nil && o.compare(n.value, v) == 0 {
		n.value = v
		return
	}
	levels := 1
	for levels < orderLevels && rand.Uint32N(4) == 0 {
		levels++
	}
	n := &orderNode[T]{value: v}
	if n.next = n.one[:]; levels > 1 {
		n.next = make([]*orderNode[T], levels)
	}
	for level := range n.next {
		n.next[level], *at[level] = *at[level], n
	}
	o.size++
}

// remove removes the value equal to v, if there is one.
func (o *order[T]) remove(v T) {
	at := o.before(v)
	n := *at[0]
	if n == nil || o.compare(n.value, v) != 0 {
		return
	}
	for level := range n.next {
		*at[level] = n.next[level]
	}
	o.size--
}

// from yields the values from v on; v need not be one of them.
func (o *order[T]) from(v T) func(yield func(T) bool) {
	return func(yield func(T) bool) {
		for n := *o.before(v)[0]; n != nil && yield(n.value); n = n.next[0] {
		}
	}
}

// all yields all values.
func (o *order[T]) all(yield func(T) bool) {
	for n := o.first[0]; n != nil && yield(n.value); n = n.next[0] {
	}
}
