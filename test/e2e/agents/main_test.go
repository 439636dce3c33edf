// SPDX-License-Identifier: Apache-2.0

// Package agents tests agents of each protocol as a Leader has them: A2A over JSON-RPC, REST and gRPC, old
// versions of it, the Agent API, Partners behind the gateway, and agents that break rules.
package agents

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

func TestMain(m *testing.M) { site.Main(m) }
