// SPDX-License-Identifier: Apache-2.0

// Package wild tests Leaders and agents as people run them, with the gateway and without.
package wild

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

func TestMain(m *testing.M) { site.Main(m) }
