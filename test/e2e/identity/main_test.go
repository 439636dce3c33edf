// SPDX-License-Identifier: Apache-2.0

// Package identity tests callers: their identity, their proofs, policies, and the secrets at rest.
package identity

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

func TestMain(m *testing.M) { site.Main(m) }
