// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"fmt"
	"reflect"
	"slices"

	"github.com/aip-gateway/aip-gateway/internal/pemtext"
	"github.com/aip-gateway/aip-gateway/trust/revocation"
)

// rootRevocation are the sources that know which certificates below some roots are revoked, in place of those of the
// app: the certificates that a proxy hands on may be those of a CA of its own.
type rootRevocation struct {
	*Revocation
	roots []*x509.Certificate // none for those of the app
}

// Ask has the sources of the app, if it has some, decide about certificates, unless others do by their root. It is
// called before all handlers are provisioned.
func (h *Host) Ask(r *Revocation) error {
	if r == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ask(r, nil)
}

// AskBelow has sources decide about the certificates below roots, however they come. Where the same settings are given
// for other roots, too, the sources are the same. It is called before the app is started.
func (h *Host) AskBelow(roots []*x509.Certificate, r *Revocation) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, root := range roots {
		if other := h.revocationOf(root); other != nil && !other.same(r) {
			return fmt.Errorf("the root %s has two blocks revocation that differ; write one, as a snippet that both import",
				pemtext.SubjectOf(root))
		}
	}
	for i := range h.revocations {
		if known := &h.revocations[i]; known.roots != nil && known.same(r) {
			known.roots = append(known.roots, roots...)
			h.Configuration.Trust.Ask(known.checker, roots...)
			return nil
		}
	}
	return h.ask(r, roots)
}

// ask adds settings. h.mu is held.
func (h *Host) ask(r *Revocation, roots []*x509.Certificate) error {
	if err := r.provision(h.Process); err != nil {
		return err
	}
	h.revocations = append(h.revocations, rootRevocation{r, roots})
	h.Configuration.Trust.Ask(r.checker, roots...)
	return nil
}

// same reports whether two settings are the same.
func (r *Revocation) same(other *Revocation) bool {
	one, two := *r, *other
	for _, settings := range []*Revocation{&one, &two} {
		settings.checker, settings.shared, settings.key = nil, nil, ""
	}
	return reflect.DeepEqual(one, two)
}

// revocationOf returns the sources for a root that has some of its own; nil for others. h.mu is held.
func (h *Host) revocationOf(root *x509.Certificate) *Revocation {
	for i := range h.revocations {
		if slices.ContainsFunc(h.revocations[i].roots, root.Equal) {
			return h.revocations[i].Revocation
		}
	}
	return nil
}

// asks reports whether the app has sources.
func (h *Host) asks() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.revocations, func(r rootRevocation) bool { return r.roots == nil })
}

// Revocations returns all settings, those of the app first.
func (h *Host) Revocations() (all []*Revocation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.revocations {
		all = append(all, h.revocations[i].Revocation)
	}
	return all
}

// Checkers returns those of all settings.
func (h *Host) Checkers() (all []*revocation.Checker) {
	for _, r := range h.Revocations() {
		all = append(all, r.checker)
	}
	return all
}

// FollowSources begins to follow the sources of all settings, unless another configuration has.
func (h *Host) FollowSources() {
	for _, r := range h.Revocations() {
		r.start()
	}
}

// LeaveSources ends the use of the sources. What is known goes on to count, for connections that are open.
func (h *Host) LeaveSources() {
	for _, r := range h.Revocations() {
		r.stop(h.Process)
	}
}
