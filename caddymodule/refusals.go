// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"crypto/x509"
	"errors"
	"sync"

	"github.com/aip-gateway/aip-gateway/internal/fewlines"
	"github.com/aip-gateway/aip-gateway/trust/revocation"
)

// The certificates of callers that were refused: by calls those that were verified but count no more, by handshakes
// those, too, that could not be verified.
var (
	refusedHandshakes = refusals{others: []string{wrongRoot, expired, wrongUsage, notVerified}}
	refusedCalls      refusals
)

// refusals counts what was refused, and logs the handshakes: to the caller, that is an alert without a reason. The zero
// value is ready for use.
type refusals struct {
	others []string // reasons besides those of revocation and rootRemoved

	lines fewlines.Limit

	mu     sync.Mutex
	counts map[string]uint64 // by reason
}

// The reason of a refusal that has another cause than revocation.
const rootRemoved = "root"

// reasonOf returns the reason of a refusal, as a label.
func reasonOf(err error) string {
	if r, ok := errors.AsType[*revocation.Refusal](err); ok {
		return labelValue(string(r.Reason))
	}
	return rootRemoved
}

// count counts a refusal.
func (r *refusals) count(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.countLocked(reasonOf(err))
}

func (r *refusals) countLocked(reason string) {
	if r.counts == nil {
		r.counts = make(map[string]uint64)
	}
	r.counts[reason]++
}

// note counts a handshake that was refused, and logs it.
func (r *refusals) note(chain []*x509.Certificate, err error) { r.noteAs(reasonOf(err), chain, err) }

func (r *refusals) noteAs(reason string, chain []*x509.Certificate, err error) {
	r.mu.Lock()
	r.countLocked(reason)
	r.mu.Unlock()
	may, unlogged := r.lines.Log()
	if !may {
		return
	}
	leaf := chain[0]
	// What to do: `reason`: wrong_root, expired, wrong_usage (no clientAuth) or not_verified.
	logOf("aip").Warn("a handshake was refused", "certificate", leaf.Subject.CommonName,
		"serial", leaf.SerialNumber.Text(16), "issuer", leaf.Issuer.String(), "reason", reason, "error", err,
		"unlogged", unlogged)
}

// all returns the counts, by reason.
func (r *refusals) all() map[string]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]uint64{rootRemoved: 0}
	for _, reason := range r.others {
		all[reason] = 0
	}
	for _, reason := range []revocation.Reason{revocation.Revoked, revocation.Stale, revocation.NoAnswer,
		revocation.RateUsedUp} {
		all[labelValue(string(reason))] = 0
	}
	for reason, n := range r.counts {
		all[reason] = n
	}
	return all
}
