// SPDX-License-Identifier: Apache-2.0

// Package webhooks tests webhooks: registration, delivery, retries, guards, and pushes by agents.
package webhooks

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

func TestMain(m *testing.M) { site.Main(m) }
