// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
)

// TestStrangersLogFewLines: strangers do not fill the log; each refusal of a known Leader is logged.
//
// Promise: a Leader or an agent uses up memory, disk or connections
func TestStrangersLogFewLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		g := newGateway(t, func(c *gateway.Config) {
			c.Guard = &identity.Guard{Mode: identity.Required}
			c.Log = slog.New(slog.NewTextHandler(&log, nil))
		})
		known := identity.Peer{Proof: identity.ByCertificate, Kind: identity.AICKind, ID: "other"}
		for _, tc := range []struct {
			peer identity.Peer
			want int
		}{{identity.Peer{}, 10}, {known, 40}} {
			log.Reset()
			f := &front{t: t, g: g, peer: tc.peer}
			for range 40 {
				f.sendTask("rpc", "get", "t", "")
			}
			if got := strings.Count(log.String(), "a caller was refused"); got != tc.want {
				t.Errorf("%d lines about %v, want %d", got, tc.peer.Proof, tc.want)
			}
		}
	})
}
