// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"errors"
	"testing"
)

func TestReadOne(t *testing.T) {
	s := NewMemory(Settings{})
	defer s.Close()
	for i, a := range []Append{
		{Log: "tx", Records: [][]byte{[]byte("1"), []byte("2"), []byte("3")}},
		{Log: "tx", Expect: 1, Records: [][]byte{[]byte("6")}, Skip: 2, Trim: 1, Snapshot: []byte("s")},
		{Log: "te", Records: [][]byte{[]byte("1")}, End: true},
	} {
		if err := s.Append(t.Context(), a); err != nil {
			t.Fatalf("append %d: %v", i, err)
		}
	}
	for _, tc := range []struct {
		log  string
		seq  uint64
		want string // empty for an error
	}{
		{"tx", 1, ""}, {"tx", 2, "2"}, {"tx", 3, "3"}, {"tx", 4, ""}, {"tx", 6, "6"}, {"tx", 7, ""}, {"tx", 9, ""},
		{"te", 1, "1"}, {"te", 2, ""}, {"none", 1, ""},
	} {
		got, err := ReadOne(t.Context(), s, tc.log, tc.seq)
		if string(got) != tc.want || (err != nil) != (tc.want == "") {
			t.Errorf("%s %d: %q, %v; want %q", tc.log, tc.seq, got, err, tc.want)
		}
	}
	if _, err := ReadOne(t.Context(), s, "te", 2); !errors.Is(err, ErrNotFound) {
		t.Errorf("behind the end of a log: %v", err)
	}
}
