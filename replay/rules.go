// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// This file holds the rules shared by all drivers.

// WithDefaults returns s with the defaults for unset fields.
func (s Settings) WithDefaults() Settings {
	if s.Retention <= 0 {
		s.Retention = DefaultRetention
	}
	if s.PinFor <= 0 {
		s.PinFor = DefaultPinFor
	}
	if s.Capacity <= 0 {
		s.Capacity = DefaultCapacity
	}
	return s
}

// Reach returns an error if a follower cannot continue after a record: a *CompactedError if the next record is no
// longer kept or the number was left out, a *FutureError if there is no such record yet. It can continue after the last
// number of a gap; a *CompactedError leads to this number.
func (h Head) Reach(after uint64) error {
	if after > h.Last {
		return &FutureError{After: after, Last: h.Last}
	}
	if after+1 < h.First {
		return &CompactedError{After: after, First: h.First, Last: h.Last}
	}
	for _, g := range h.Gaps {
		if after >= max(g.From, h.First) && after < g.To {
			return &CompactedError{After: after, First: g.To + 1, Last: h.Last}
		}
	}
	return nil
}

// Kept returns the number of records kept.
func (h Head) Kept() uint64 {
	n := h.Last + 1 - h.First
	for _, g := range h.Gaps {
		n -= g.To + 1 - max(g.From, h.First)
	}
	return n
}

// After returns the number of the next record after a number, appended already or not.
func (h Head) After(seq uint64) uint64 {
	for _, g := range h.Gaps {
		if seq+1 >= g.From && seq < g.To {
			return g.To + 1
		}
	}
	return seq + 1
}

// Next returns the head of a log after a, given its head h before: the zero Head for a log that does not exist. Bytes
// still includes the records dropped by Trim; the driver subtracts them. Metadata is a's own slice. The error is
// ErrConflict if h is not the head known to the writer, or if the log has ended: a writer knowing of the end would not
// append.
func (a *Append) Next(h Head, now time.Time) (Head, error) {
	if a.Log == "" || len(a.Log) > MaxName {
		return h, fmt.Errorf("replay: the name of a log has %d bytes, but must have 1 to %d", len(a.Log), MaxName)
	}
	if h.Revision != a.Expect || !h.Ended.IsZero() {
		return h, ErrConflict
	}
	if err := a.checkLists(); err != nil {
		return h, err
	}
	if len(a.Records) > 0 {
		h.Lost, h.Cut = 0, false
		if a.Skip > 0 {
			h.Gaps = append(slices.Clip(h.Gaps), Gap{From: h.Last + 1, To: h.Last + a.Skip})
			h.Last += a.Skip
		}
	}
	last := h.Last + uint64(len(a.Records))
	if a.Trim > last {
		return h, fmt.Errorf("replay: the records up to %d cannot be dropped, the last one is %d", a.Trim, last)
	}
	h.Revision++
	h.First = max(h.First, 1, a.Trim+1)
	h.Last = last
	for len(h.Gaps) > 0 && h.Gaps[0].To < h.First {
		h.Gaps = h.Gaps[1:]
	}
	for _, r := range a.Records {
		h.Bytes += int64(len(r))
	}
	h.Metadata = a.Metadata
	h.DueAt = a.DueAt
	h.Lists = a.Lists
	if a.End {
		h.Ended = now
	}
	return h, nil
}

// checkLists returns an error if the lists of the append break the rules of lists.
func (a *Append) checkLists() error {
	if len(a.Lists) > MaxLists {
		return fmt.Errorf("replay: the log is to be in %d lists, but may be in %d", len(a.Lists), MaxLists)
	}
	for i, l := range a.Lists {
		if l.List == "" || len(l.List) > MaxName || len(l.Label) > MaxLabel {
			return fmt.Errorf("replay: the name of a list has %d bytes and its label %d, but must have 1 to %d and 0 to %d",
				len(l.List), len(l.Label), MaxName, MaxLabel)
		}
		if slices.ContainsFunc(a.Lists[:i], func(before Listing) bool { return before.List == l.List }) {
			return fmt.Errorf("replay: the log is to be in the list %q twice", l.List)
		}
	}
	return nil
}

// Compare orders logs as Store.Due yields them: by At, and those with the same At by the bytes of their names.
func (l DueLog) Compare(m DueLog) int {
	return cmp.Or(l.At.Compare(m.At), cmp.Compare(l.Log, m.Log))
}

// Compare orders the logs of a list: those with the latest At first, and those with the same At by the bytes of their
// names. It returns a number below 0 if l comes before m.
func (l ListedLog) Compare(m ListedLog) int {
	return cmp.Or(m.At.Compare(l.At), cmp.Compare(l.Log, m.Log))
}
