// SPDX-License-Identifier: Apache-2.0

// Package groups tests groups over RabbitMQ: invitations, membership, rules, and disturbances.
package groups

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

func TestMain(m *testing.M) { site.Main(m) }
