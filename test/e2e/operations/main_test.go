// SPDX-License-Identifier: Apache-2.0

// Package operations tests the operation of a gateway: configuration, reload, drain, backup, logs,
// metrics, and a full disk.
package operations

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

func TestMain(m *testing.M) { site.Main(m) }
