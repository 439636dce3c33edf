// SPDX-License-Identifier: Apache-2.0

package caddymodule

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
	roots []*x509.Certificate
}

// addRevocation has sources decide about the certificates below roots, however they come. Where the same settings are
// given for other roots, too, the sources are the same. It is called before the app is started.
func (a *App) addRevocation(r *Revocation, roots []*x509.Certificate) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, root := range roots {
		if other := a.revocationOf(root); other != nil && !other.same(r) {
			return fmt.Errorf("the root %s has two blocks revocation that differ; write one, as a snippet that both import",
				pemtext.SubjectOf(root))
		}
	}
	for i := range a.revocations {
		if known := &a.revocations[i]; known.same(r) {
			known.roots = append(known.roots, roots...)
			a.configuration.Trust.Ask(known.checker, roots...)
			return nil
		}
	}
	if err := r.provision(); err != nil {
		return err
	}
	a.revocations = append(a.revocations, rootRevocation{r, roots})
	a.configuration.Trust.Ask(r.checker, roots...)
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

// revocationOf returns the sources for a root that has some of its own; nil for others.
func (a *App) revocationOf(root *x509.Certificate) *Revocation {
	for i := range a.revocations {
		if slices.ContainsFunc(a.revocations[i].roots, root.Equal) {
			return a.revocations[i].Revocation
		}
	}
	return nil
}

// allRevocations returns all settings, those of the app first.
func (a *App) allRevocations() (all []*Revocation) {
	if a.Revocation != nil {
		all = append(all, a.Revocation)
	}
	for i := range a.revocations {
		all = append(all, a.revocations[i].Revocation)
	}
	return all
}

// checkers returns those of all settings.
func (a *App) checkers() (all []*revocation.Checker) {
	for _, r := range a.allRevocations() {
		all = append(all, r.checker)
	}
	return all
}
