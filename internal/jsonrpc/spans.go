// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"slices"
	"sort"

	"github.com/tidwall/gjson"
)

// spans are where the large values of a body begin and end, so that ForEach passes over them without reading them
// again: a text within objects and arrays would be read once for each. They stand in the order of their beginnings, as
// two numbers each: the offset, and that of the end times four, plus the escapes of a string. The first number is mark.
// A gjson.Result of this package has those of its whole body as its Indexes, and its offset in the body as its Index.
type spans []int

// mark is no index of gjson's.
const mark = -1

const (
	// large is the least size of a value with a span, in bytes: to read less costs no more than to look for it.
	large = 1 << 10
	// maxSpans is the most spans of a body. Values beyond that are read again.
	maxSpans = 256
)

// add adds the span of a value that is large, before those from a place on. They are of the values in it.
func (s *spans) add(before, start, end int, has escapes) {
	if end-start < large || len(*s) > 2*maxSpans {
		return
	}
	if len(*s) == 0 {
		*s = append(*s, mark)
	}
	*s = slices.Insert(*s, max(before, 1), start, end*4+int(has))
}

// within returns the spans of the values in a value.
func within(v *gjson.Result) spans { return behind(v, v.Index) }

// behind returns the spans in the body of a value that begin behind an offset.
func behind(v *gjson.Result, offset int) spans {
	s := v.Indexes
	if len(s) == 0 || s[0] != mark {
		return nil
	}
	s = s[1:]
	return s[2*sort.Search(len(s)/2, func(i int) bool { return s[2*i] > offset }):]
}

// at returns the end of the value at an offset, and the escapes of a string; 0 if it has no span. s is then the spans
// from there on.
func (s *spans) at(offset int) (end int, has escapes) {
	for len(*s) > 0 && (*s)[0] < offset {
		*s = (*s)[2:]
	}
	if len(*s) == 0 || (*s)[0] != offset {
		return 0, 0
	}
	return (*s)[1] / 4, escapes((*s)[1] % 4)
}

// Usual reports whether v is a large string of a checked body, and has no escape but \", \\, \n, \r and \t. It may
// report false for such a string: only so many have spans.
func Usual(v gjson.Result) bool {
	if v.Type != gjson.String || len(v.Raw) < large {
		return false
	}
	s := behind(&v, v.Index-1)
	end, has := s.at(v.Index)
	return end == v.Index+len(v.Raw) && has&unusualEscape == 0
}
