// SPDX-License-Identifier: Apache-2.0

// Package console tests the operators' console in a browser.
package console

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

func TestMain(m *testing.M) { site.Main(m) }
