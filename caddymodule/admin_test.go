// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

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
