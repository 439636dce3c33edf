// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"slices"
	"time"
)

// Health is the state of a source.
type Health struct {
	Kind     Kind
	Location string // as in the configuration

	place int

	// Of the list in use; of several, of the one ending first. Zero values for none.
	Issuer     string // its distinguished name
	Number     string // in decimal digits
	Entries    int    // of all lists
	Delta      bool
	ThisUpdate time.Time
	NextUpdate time.Time

	Good time.Time // last time the source gave the list in use, or a good answer; zero for never
	Err  error     // reason there is nothing newer; nil if there is

	// Unasked is the number of times a source of OCSP or ACPS was not asked about a certificate, since its rate was used
	// up.
	Unasked uint64
}

// Health returns the states of the sources, in the order of the configuration.
func (c *Checker) Health() []Health {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Health
	for _, at := range c.locations {
		h := Health{Kind: CRL, Location: at.name, place: at.place, Err: at.err}
		for _, l := range at.current {
			h.Entries += l.entries
			if !h.NextUpdate.IsZero() && !l.until.Before(h.NextUpdate) {
				continue
			}
			h.Issuer, h.Number, h.Delta = l.authority.Subject.String(), "", l.base != nil
			h.ThisUpdate, h.NextUpdate, h.Good = l.from, l.until, l.span().given
			if l.number != nil {
				h.Number = l.number.String()
			}
		}
		all = append(all, h)
	}
	for _, q := range c.queriers {
		q.mu.Lock()
		all = append(all, Health{Kind: q.Kind, Location: q.Location, place: q.place, Good: q.good,
			Err: q.trouble(time.Now()), Unasked: q.unasked})
		q.mu.Unlock()
	}
	for _, r := range c.registries {
		h := r.feed.Health()
		all = append(all, Health{Kind: Registry, Location: r.base, place: r.place, Entries: h.Inactive, Good: h.Answered,
			Err: h.Err})
	}
	slices.SortFunc(all, func(a, b Health) int { return a.place - b.place })
	return all
}
