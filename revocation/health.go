// SPDX-License-Identifier: Apache-2.0

package revocation

import "time"

// Source is what is known of a source.
type Source struct {
	Kind     string // crl, ocsp or acps
	Location string // as in the configuration

	// Of a list that is in use; zero values for none.
	Issuer     string // its distinguished name
	Number     string // in decimal digits
	Entries    int
	Delta      bool
	ThisUpdate time.Time
	NextUpdate time.Time

	Good time.Time // when the source has last given what is in use, or a good answer; zero for never
	Err  error     // why there is nothing newer; nil if there is
}

// Health returns what is known of the sources, in the order of the configuration.
func (c *Checker) Health() []Source {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Source
	for _, at := range c.locations {
		s := Source{Kind: "crl", Location: at.name, Err: at.err}
		if l := at.current; l != nil {
			s.Issuer, s.Entries, s.Delta = l.authority.Subject.String(), l.entries, l.base != nil
			s.ThisUpdate, s.NextUpdate, s.Good = l.from, l.until, l.span().given
			if l.number != nil {
				s.Number = l.number.String()
			}
		}
		all = append(all, s)
	}
	for _, q := range c.queriers {
		q.mu.Lock()
		all = append(all, Source{Kind: string(q.Kind), Location: q.URL, Good: q.good, Err: q.err})
		q.mu.Unlock()
	}
	return all
}
