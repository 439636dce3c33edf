// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"fmt"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

func listed(t *testing.T, s replay.Store, list string) (all []replay.ListedLog) {
	t.Helper()
	for l, err := range s.Listed(t.Context(), list, replay.ListedLog{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}

// TestListedCost reads the first logs of a long list by one page, without decoding heads.
func TestListedCost(t *testing.T) {
	s := openAt(t, t.TempDir(), replay.Settings{})
	const n = 2000
	for i := range n {
		appendAll(t, s, []replay.Append{{Log: fmt.Sprintf("t%05d", i), Metadata: make([]byte, 200),
			Lists: []replay.Listing{{List: "list", At: time.Unix(int64(1+i), 0)}}}})
	}
	page, err := s.listedPage(t.Context(), "list", replay.ListedLog{}, nil)
	if err != nil || len(page) != listedPage || page[0].Log != fmt.Sprintf("t%05d", n-1) {
		t.Fatalf("a page of %d, %v", len(page), err)
	}
	b := s.db.NewBatch()
	defer b.Close()
	if err := b.DeleteRange([]byte{spaceHead}, []byte{spaceHead + 1}, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.commit(b, false); err != nil {
		t.Fatal(err)
	}
	if got := listed(t, s, "list"); len(got) != n {
		t.Errorf("%d logs without their heads, want %d", len(got), n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
