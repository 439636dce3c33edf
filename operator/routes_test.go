// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// TestEveryRouteHasAHandler: each route of the table has one, those of health have their own, and there is no handler
// without a route.
func TestEveryRouteHasAHandler(t *testing.T) {
	handlers := Handlers(nil)
	for _, route := range adminapi.Routes {
		health := route.Path == adminapi.HealthLive || route.Path == adminapi.HealthReady
		if _, ok := handlers[route.Path]; ok == health {
			t.Errorf("%s has a handler: %v", route.Path, ok)
		}
	}
	for path := range handlers {
		if adminapi.RouteOf(path) == nil {
			t.Errorf("%s has a handler, but is no route", path)
		}
	}
}
