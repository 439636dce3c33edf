// SPDX-License-Identifier: Apache-2.0

// Package certificates tests certificates and registries: roots, revocation, registration,
// discovery, and proxies in between.
package certificates

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

func TestMain(m *testing.M) { site.Main(m) }
