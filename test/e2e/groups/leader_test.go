// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/rabbittest"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// ownBroker starts a broker that the test may stop.
func ownBroker(t testing.TB) *rabbittest.Broker {
	t.Helper()
	b, err := site.NewBroker(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}
