// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"errors"
	"slices"
	"time"
)

// authority is an issuer of certificates from a verified chain, and its lists.
type authority struct {
	cert  *x509.Certificate
	lists []coverage
}

// coverage is a complete list with its delta; either may be missing.
type coverage struct{ base, delta *list }

// same reports whether a certificate is one of the same issuer: it may be renewed.
func (a *authority) same(issuer *x509.Certificate) bool {
	return a.cert == issuer || bytes.Equal(a.cert.RawSubjectPublicKeyInfo, issuer.RawSubjectPublicKeyInfo) &&
		bytes.Equal(a.cert.RawSubject, issuer.RawSubject)
}

func find(all []*authority, issuer *x509.Certificate) *authority {
	for _, a := range all {
		if a.same(issuer) {
			return a
		}
	}
	return nil
}

// learn returns the authority for the issuer of a verified chain. Lists waiting for it count from now on. It returns
// nil if too many issuers are known.
func (c *Checker) learn(issuer *x509.Certificate) *authority {
	if a := find(*c.known.Load(), issuer); a != nil {
		return a
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.admit(issuer)
}

// admit is learn. c.mu is held.
func (c *Checker) admit(issuer *x509.Certificate) *authority {
	known := *c.known.Load()
	if a := find(known, issuer); a != nil {
		return a
	}
	if len(known) >= maxAuthorities {
		return nil
	}
	known = append(slices.Clone(known), &authority{cert: issuer}) // no call reads it before it has its lists
	adopted := false
	for _, at := range c.locations {
		adopted = c.adopt(at, issuer, known) || adopted
	}
	if adopted {
		c.arrange(known)
	} else {
		c.known.Store(&known)
	}
	return find(*c.known.Load(), issuer)
}

// adopt puts in use the lists of a location that have waited for an issuer. It reports whether there are any. c.mu is
// held.
func (c *Checker) adopt(at *location, issuer *x509.Certificate, known []*authority) bool {
	waiting, before := at.pending, at.err
	if !slices.ContainsFunc(waiting, func(l *list) bool { return l.names(issuer) }) {
		return false
	}
	at.pending = nil
	var fresh []*list
	var refused error
	for _, l := range waiting {
		changed, err := c.offer(at, l, waiting, known)
		switch {
		case changed:
			fresh = append(fresh, l)
		case !errors.Is(err, errPending):
			l.drop()
			refused = cmp.Or(refused, err)
		}
	}
	switch {
	case refused != nil: // and it is fetched whole the next time
		at.err, at.etag, at.lastModified = refused, "", ""
	case errors.Is(at.err, errPending) && len(at.pending) == 0:
		at.err = nil
	}
	c.report(at, fresh, before)
	if len(fresh) > 0 {
		c.keepSoon(at)
	}
	return len(fresh) > 0
}

// arrange puts the lists in order by their issuers, and makes these the known ones. c.mu is held.
func (c *Checker) arrange(issuers []*authority) {
	var known []*authority
	for _, old := range issuers {
		a := &authority{cert: old.cert}
		var deltas []*list
		for _, at := range c.locations {
			for _, l := range at.current {
				switch {
				case !a.same(l.authority):
				case l.base != nil:
					deltas = append(deltas, l)
				default:
					a.lists = append(a.lists, coverage{base: l})
				}
			}
		}
		for _, delta := range deltas {
			a.add(delta)
		}
		known = append(known, a)
	}
	c.known.Store(&known)
	c.change()
}

// add adds a delta to its complete lists. A delta for none still counts for its revoked certificates.
func (a *authority) add(delta *list) {
	added := false
	for i, cover := range a.lists {
		if base := cover.base; base != nil && delta.adds(base) {
			if cover.delta == nil || cover.delta.older(delta) {
				a.lists[i].delta = delta
			}
			added = true
		}
	}
	if !added {
		a.lists = append(a.lists, coverage{delta: delta})
	}
}

// adds reports whether a delta can be added to a complete list of its issuer (RFC 5280 §5.2.4).
func (l *list) adds(base *list) bool {
	return base.number != nil && base.scope.raw == l.scope.raw &&
		base.number.Cmp(l.base) >= 0 && base.number.Cmp(l.number) < 0
}

// byLists returns the verdict of the lists of an issuer about a certificate.
func (c *Checker) byLists(cert *x509.Certificate, issuer *authority, now time.Time) (v verdict) {
	if issuer == nil {
		return v
	}
	var number serial
	if cert.SerialNumber.BitLen() > 8*len(number) {
		return v // no list can have it
	}
	cert.SerialNumber.FillBytes(number[:])
	for _, cover := range issuer.lists {
		if l := cover.revokes(number); l != nil {
			return verdict{revoked, l.location.name, l.location.place}
		}
		if l := cover.base; l != nil && l.scope.has(cert) {
			if o := c.judge(l.span(), now); o > v.outcome {
				v = verdict{o, l.location.name, l.location.place}
			}
			if d := cover.delta; d != nil {
				if o := c.judge(d.span(), now); o > v.outcome {
					v = verdict{o, d.location.name, d.location.place}
				}
			}
		}
	}
	return v
}

// revokes returns the list revoking a certificate; nil if none has.
func (c coverage) revokes(number serial) *list {
	switch {
	case c.delta != nil && c.delta.serials.has(number):
		return c.delta
	case c.base != nil && c.base.serials.has(number) && (c.delta == nil || !c.delta.removed.has(number)):
		return c.base
	}
	return nil
}
