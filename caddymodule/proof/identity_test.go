// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestAcceptWithCertificatesAlone: which proofs a dialect takes counts where certificates are the only proof that is
// configured, too.
//
// Promise: another party acts as a Leader
func TestAcceptWithCertificatesAlone(t *testing.T) {
	callers, err := gateway.Callers([]string{"aip", "a2a/1.0"}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	i := &Identity{Mode: string(identity.Optional), Accept: map[string][]string{"a2a": {"keys"}}}
	i.FillDefaults()
	g := i.Guard(callers, nil)
	peer := identity.Peer{Proof: identity.ByCertificate, Kind: identity.AICKind, ID: "leader"}
	if _, err := g.CheckIn("a2a/1.0", peer); task.KindOf(err) != task.AuthenticationRequired {
		t.Errorf("a2a takes keys alone, and a certificate is answered with %v", err)
	}
	if _, err := g.CheckIn("aip", peer); err != nil {
		t.Errorf("aip takes certificates: %v", err)
	}
	if _, err := g.CheckIn("a2a/1.0", identity.Peer{}); err != nil {
		t.Errorf("who has no proof is accepted in this mode: %v", err)
	}
}
