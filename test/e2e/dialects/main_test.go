// SPDX-License-Identifier: Apache-2.0

// Package dialects tests every dialect of callers with every dialect of agents, through one gateway
// and through several.
package dialects

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

func TestMain(m *testing.M) { site.Main(m) }
