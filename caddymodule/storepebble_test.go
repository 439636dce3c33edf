// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/aip-gateway/aip-gateway/replay"
)

// TestImportedTasksAreListed: an archive has no lists, so the gateway that opens an imported store first makes them.
func TestImportedTasksAreListed(t *testing.T) {
	from := replay.NewMemory(replay.Settings{})
	if err := from.Append(t.Context(), replay.Append{Log: "task", Records: [][]byte{{1}}}); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if _, err := replay.Export(t.Context(), from, &archive); err != nil {
		t.Fatal(err)
	}
	driver := &PebbleStore{Dir: filepath.Join(t.TempDir(), "store")}
	if _, err := driver.Import(t.Context(), &archive, driver.Dir); err != nil {
		t.Fatal(err)
	}
	s, err := driver.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	asked := ""
	if err := s.Relist(t.Context(), func(log string, _ []byte) []replay.Listing {
		asked = log
		return nil
	}); err != nil || asked != "task" {
		t.Errorf("the lists of %q are made, %v", asked, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
