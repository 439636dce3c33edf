// SPDX-License-Identifier: Apache-2.0

// Package tasks tests tasks: the flow of commands, crashes, faults, repair, and the envelope.
package tasks

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

func TestMain(m *testing.M) { site.Main(m) }
