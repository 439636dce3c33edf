// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/leader"
)

// TestStoreAway takes the directory of the store away from a running gateway, as an unmounted volume does. Starts are
// refused in those words, and work again without a restart when it is back. What was answered before is there.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	_, agent := sampleAgent(t)
	s := newSite(t)
	dir := filepath.Join(s.dir, "store")
	s.start(config{store: "store pebble " + dir, handle: "aip_gateway a2a/legacy http://" + agent})
	caller := leaderOf(t, s.url())
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	var refusal *leader.Error
	answered := 0
	for ; refusal == nil && answered < 1000; answered++ { // the files that are open take some
		_, err := caller.try(startCall(fmt.Sprint("big-", answered), strings.Repeat("big ", 20_000)))
		if err != nil && !errors.As(err, &refusal) {
			t.Fatal(err)
		}
	}
	answered-- // but for the last one
	if refusal == nil || refusal.Code != -32603 || data(t, refusal.Data)["reason"] != "STORE_UNAVAILABLE" {
		t.Errorf("a start without a store: %+v, want -32603 with the reason STORE_UNAVAILABLE", refusal)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the store works again", func() bool {
		_, err := caller.try(startCall("after", "hello"))
		return err == nil
	})
	caller.rests("after")
	for i := range answered {
		checkHistory(t, caller.rests(fmt.Sprint("big-", i)))
	}
}
