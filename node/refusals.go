// SPDX-License-Identifier: Apache-2.0

package node

import (
	"crypto/x509"
	"errors"
	"log/slog"
	"strings"
	"sync"

	"github.com/aip-gateway/aip-gateway/internal/fewlines"
	"github.com/aip-gateway/aip-gateway/trust/revocation"
)

// The reasons of refusals beside those of revocation. By the last four, TLS itself refuses a Leader's certificate.
const (
	rootRemoved = "root"

	WrongRoot   = "wrong_root"
	Expired     = "expired" // or not valid yet
	WrongUsage  = "wrong_usage"
	NotVerified = "not_verified" // for another one, named in the error
)

// Refusals counts refused certificates of callers, and logs those of handshakes: to the caller, a refused handshake is
// an alert without a reason.
type Refusals struct {
	others []string // reasons besides those of revocation and rootRemoved

	log   *slog.Logger
	lines fewlines.Limit

	mu     sync.Mutex
	counts map[string]uint64 // by reason
}

// reasonOf returns the reason of a refusal, as a label.
func reasonOf(err error) string {
	if r, ok := errors.AsType[*revocation.Refusal](err); ok {
		return label(r.Reason)
	}
	return rootRemoved
}

// label returns a reason as the value of a label.
func label(r revocation.Reason) string {
	return strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(string(r)))
}

// count counts a refusal.
func (r *Refusals) count(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.countLocked(reasonOf(err))
}

func (r *Refusals) countLocked(reason string) {
	if r.counts == nil {
		r.counts = make(map[string]uint64)
	}
	r.counts[reason]++
}

// Note counts a handshake that was refused, and logs it.
func (r *Refusals) Note(chain []*x509.Certificate, err error) { r.NoteAs(reasonOf(err), chain, err) }

// NoteAs is Note for a reason of TLS.
func (r *Refusals) NoteAs(reason string, chain []*x509.Certificate, err error) {
	r.mu.Lock()
	r.countLocked(reason)
	r.mu.Unlock()
	may, unlogged := r.lines.Log()
	if !may {
		return
	}
	leaf := chain[0]
	// What to do: `reason`: wrong_root, expired, wrong_usage (no clientAuth) or not_verified.
	r.log.Warn("a handshake was refused", "certificate", leaf.Subject.CommonName,
		"serial", leaf.SerialNumber.Text(16), "issuer", leaf.Issuer.String(), "reason", reason, "error", err,
		"unlogged", unlogged)
}

// All returns the counts, by reason.
func (r *Refusals) All() map[string]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]uint64{rootRemoved: 0}
	for _, reason := range r.others {
		all[reason] = 0
	}
	for _, reason := range []revocation.Reason{revocation.Revoked, revocation.Stale, revocation.NoAnswer,
		revocation.RateUsedUp} {
		all[label(reason)] = 0
	}
	for reason, n := range r.counts {
		all[reason] = n
	}
	return all
}
