// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// adminAnswer asks a route of the admin API, and decodes the answer.
func adminAnswer(t *testing.T, method, target, body string, into any) (status int) {
	t.Helper()
	w := httptest.NewRecorder()
	adminHandler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body)))
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		t.Fatalf("%s %s is answered with %d %s: %v", method, target, w.Code, w.Body, err)
	}
	return w.Code
}

// TestQueries: a query of which a part cannot be read, or is of no use, is refused. Without that part, a request would
// be about more than the operator means.
func TestQueries(t *testing.T) {
	s := newSite(t)
	s.mustLoad(s.config("", ""))
	for of, want := range map[string]int{
		"POST " + adminapi.ReplayDeliveries + "?status=dead&leader=key:a%3Bb": http.StatusOK,
		"POST " + adminapi.ReplayDeliveries + "?status=dead&leader=key:a;b":   http.StatusBadRequest,
		"POST " + adminapi.ReplayDeliveries + "?status=dead&leader=key:%zz":   http.StatusBadRequest,
		"POST " + adminapi.ReplayDeliveries + "?status=dead&reader=key:a":     http.StatusBadRequest,
		"POST " + adminapi.Registrations + "?partner=a.example":               http.StatusBadRequest,
		"POST " + adminapi.Withdraw + "?partner=https://a.example":            http.StatusBadRequest,
		"GET " + adminapi.Endpoints:                                           http.StatusOK,
		"GET " + adminapi.Endpoints + "?host=a":                               http.StatusBadRequest,
		"GET " + adminapi.Cluster + "?brief=true":                             http.StatusOK,
		"GET " + adminapi.Drain + "?node=another-one":                         http.StatusBadRequest,
	} {
		w := httptest.NewRecorder()
		method, url, _ := strings.Cut(of, " ")
		adminHandler().ServeHTTP(w, httptest.NewRequest(method, url, nil))
		if w.Code != want {
			t.Errorf("%s is answered with %d %s, want %d", of, w.Code, w.Body, want)
		}
	}
}

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
			var r adminapi.StoreReport
			status := adminAnswer(t, http.MethodPost, adminapi.VerifyStore, "", &r)
			if status != http.StatusOK || r.Driver != driver || r.Dir != dir || r.Size > 0 != onDisk || r.Kinds["task"] != 1 ||
				r.Damaged != 0 {
				t.Errorf("report %d %+v", status, r)
			}
			body := fmt.Sprintf(`{"dir": %q}`, filepath.Join(t.TempDir(), "copy"))
			var refused struct{ Error string }
			status = adminAnswer(t, http.MethodPost, adminapi.BackupStore, body, &refused)
			switch {
			case onDisk && status != http.StatusOK:
				t.Errorf("the backup: %d %s", status, refused.Error)
			case !onDisk && (status != http.StatusConflict ||
				refused.Error != "the driver memory has nothing on the disk to be copied; export the store"):
				t.Errorf("the backup: %d %s", status, refused.Error)
			}
		})
	}
}
