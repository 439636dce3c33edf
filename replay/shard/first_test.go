// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"errors"
	"io"
	"testing"

	"github.com/aip-gateway/aip-gateway/replay/shard"
)

// TestFirst: a find in one shard counts, whatever the errors of others.
func TestFirst(t *testing.T) {
	type found struct {
		value string
		err   error
	}
	for _, c := range []struct {
		in   map[int]found
		want found
	}{
		{map[int]found{1: {}, 4: {}}, found{}},
		{map[int]found{1: {"", io.EOF}, 4: {"in 4", nil}}, found{"in 4", nil}},
		{map[int]found{1: {"in 1", nil}, 4: {"in 4", nil}}, found{"in 1", nil}},
		{map[int]found{1: {"in 1", io.EOF}, 4: {}}, found{"", io.EOF}},
	} {
		got, err := shard.First([]int{1, 4}, "", func(i int) (string, error) { return c.in[i].value, c.in[i].err })
		if got != c.want.value || !errors.Is(err, c.want.err) {
			t.Errorf("%+v: %q, %v, want %+v", c.in, got, err, c.want)
		}
	}
}
