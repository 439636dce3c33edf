// SPDX-License-Identifier: Apache-2.0

// Package cluster tests several gateways over one store: take-overs, faults, stops, and the console of all.
package cluster

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

func TestMain(m *testing.M) { site.Main(m) }
