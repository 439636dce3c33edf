// SPDX-License-Identifier: Apache-2.0

package replay

import "slices"

// order is a set of values in their order. It takes little more memory than the values: they are in runs, slices of at
// most orderRun values. So the cost of adding a value, removing one, or finding a place is some comparisons, by the
// logarithm of their number, and the move of a part of a run. Compare must be set before the first use.
type order[T any] struct {
	compare func(a, b T) int
	runs    [][]T // in order, and none is empty
	size    int
}

// orderRun is the greatest number of values in a run, and orderSlack the most unused room at its end but for an eighth.
const (
	orderRun   = 256
	orderSlack = 4
)

// find returns the place of the first value not before v: a run, and an index that may be the end of the run. It
// reports whether this value is equal to v.
func (o *order[T]) find(v T) (run, at int, found bool) {
	low, high := 1, len(o.runs) // the runs before low begin before v, or are the first one
	for low < high {
		if middle := int(uint(low+high) >> 1); o.compare(o.runs[middle][0], v) > 0 {
			high = middle
		} else {
			low = middle + 1
		}
	}
	run = low - 1
	if run < len(o.runs) {
		at, found = slices.BinarySearchFunc(o.runs[run], v, o.compare)
	}
	return run, at, found
}

// add adds a value, or replaces the one equal to it.
func (o *order[T]) add(v T) {
	run, at, found := o.find(v)
	switch {
	case found:
		o.runs[run][at] = v
		return
	case len(o.runs) == 0:
		o.runs = append(o.runs, nil)
	case len(o.runs[run]) == orderRun:
		run, at = o.split(run, at)
	}
	all := o.runs[run]
	if len(all) == cap(all) {
		all = roomy(all)
	}
	all = append(all, v)
	copy(all[at+1:], all[at:])
	all[at] = v
	o.runs[run] = all
	o.size++
}

// split makes room in a full run for a value. It returns the new place of the value. Values added in their order fill
// their runs.
func (o *order[T]) split(run, at int) (int, int) {
	all := o.runs[run]
	half := len(all) / 2
	switch at {
	case 0:
		o.runs = slices.Insert(o.runs, run, nil)
		return run, 0
	case len(all):
		o.runs = slices.Insert(o.runs, run+1, nil)
		return run + 1, 0
	}
	o.runs[run] = roomy(all[:half])
	o.runs = slices.Insert(o.runs, run+1, roomy(all[half:]))
	if at > half {
		return run + 1, at - half
	}
	return run, at
}

// roomy returns a copy of values with some room.
func roomy[T any](values []T) []T {
	return append(make([]T, 0, min(orderRun, len(values)+len(values)/8+orderSlack)), values...)
}

// remove removes the value equal to v, if there is one.
func (o *order[T]) remove(v T) {
	run, at, found := o.find(v)
	if !found {
		return
	}
	o.size--
	all := slices.Delete(o.runs[run], at, at+1)
	o.runs[run] = all
	for _, left := range []int{run - 1, run} { // join what fits into half a run
		if left >= 0 && left+1 < len(o.runs) && len(o.runs[left])+len(o.runs[left+1]) <= orderRun/2 {
			o.runs[left] = roomy(slices.Concat(o.runs[left], o.runs[left+1]))
			o.runs = slices.Delete(o.runs, left+1, left+2)
			return
		}
	}
	switch {
	case len(all) == 0:
		o.runs = slices.Delete(o.runs, run, run+1)
	case cap(all) > 2*len(all)+2*orderSlack:
		o.runs[run] = roomy(all)
	}
}

// from yields the values from v on; v need not be one of them. The set must not change meanwhile.
func (o *order[T]) from(v T) func(yield func(T) bool) {
	return func(yield func(T) bool) {
		run, at, _ := o.find(v)
		for ; run < len(o.runs); run, at = run+1, 0 {
			for _, v := range o.runs[run][at:] {
				if !yield(v) {
					return
				}
			}
		}
	}
}
