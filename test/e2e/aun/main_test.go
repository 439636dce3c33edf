// SPDX-License-Identifier: Apache-2.0

// Package aun tests the AUN side: logins, messages, tasks, agents that are assigned tasks, and
// agents behind another gateway of AUN.
package aun

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

func TestMain(m *testing.M) { site.Main(m) }
