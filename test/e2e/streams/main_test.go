// SPDX-License-Identifier: Apache-2.0

// Package streams tests streams: resumption, take-over of connections, slow readers, memory, and stops.
package streams

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

func TestMain(m *testing.M) { site.Main(m) }
