// SPDX-License-Identifier: Apache-2.0

// Package conform tests the gateway as a Partner of AIP by aipconform, in front of agents of each dialect, and what
// A2A's own tests see of an agent behind it. It needs ../../../conform/bin/aipconform; `make conform` builds it.
package conform

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

func TestMain(m *testing.M) { site.Main(m) }
