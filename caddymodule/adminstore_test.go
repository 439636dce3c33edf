// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestStoreOfEachDriver: what the admin API says of a store, and whether it copies it, depends on what the driver can
// do.
func TestStoreOfEachDriver(t *testing.T) {
	for _, driver := range []string{"pebble", "memory"} {
		t.Run(driver, func(t *testing.T) {
			s := newSite(t)
			dir, onDisk := s.dir, driver == "pebble"
			if !onDisk {
				dir = ""
			}
			s.mustLoad(s.healthSite("agent a2a/legacy "+s.agent, strings.TrimSpace(driver+" "+dir)))
			s.want("start", "t", "hello", "awaiting-completion")
			o := running()
			got, err := reportStore(true)(o, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
			r, ok := got.(adminapi.StoreReport)
			if err != nil || !ok || r.Driver != driver || r.Dir != dir || r.Size > 0 != onDisk || r.Kinds["task"] != 1 ||
				r.Damaged != 0 {
				t.Errorf("report %+v, %v", got, err)
			}
			body := fmt.Sprintf(`{"dir": %q}`, filepath.Join(t.TempDir(), "copy"))
			_, err = backupStore(o, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/",
				strings.NewReader(body)))
			switch {
			case onDisk && err != nil:
				t.Errorf("the backup: %v", err)
			case !onDisk && (task.KindOf(err) != task.UnsupportedOperation || !strings.Contains(err.Error(),
				"the driver memory has nothing on the disk to be copied; export the store")):
				t.Errorf("the backup: error %v", err)
			}
		})
	}
}
