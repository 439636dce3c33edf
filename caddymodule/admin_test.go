// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aip-gateway/aip-gateway/caddymodule/adminapi"
)

// TestQueryThatCannotBeRead: a query of which a part cannot be read is refused. Without that part, it would select more
// than the operator means.
func TestQueryThatCannotBeRead(t *testing.T) {
	s := newSite(t)
	s.mustLoad(s.config("", ""))
	for query, want := range map[string]int{
		"status=dead&leader=key:a%3Bb": http.StatusOK,
		"status=dead&leader=key:a;b":   http.StatusBadRequest,
		"status=dead&leader=key:%zz":   http.StatusBadRequest,
		"status=dead&reader=key:a":     http.StatusBadRequest,
	} {
		w := httptest.NewRecorder()
		adminHandler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, adminapi.ReplayDeliveries+"?"+query, nil))
		if w.Code != want {
			t.Errorf("%s is answered with %d %s, want %d", query, w.Code, w.Body, want)
		}
	}
}
