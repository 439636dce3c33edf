// SPDX-License-Identifier: Apache-2.0

// Package guides tests the pages and the files for operators as they stand: what a page has a reader enter works.
package guides

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

func TestMain(m *testing.M) { site.Main(m) }
