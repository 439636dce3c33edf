// SPDX-License-Identifier: Apache-2.0

package http1

import "time"

// deadline is the one that is set for the reads or the writes of a connection; of the zero deadline nothing is known.
// It is moved late, because to move it for every request and every read costs more than a read that ends too early and
// is made again.
type deadline struct {
	known bool
	at    time.Time // zero for none
}

// move reports whether the deadline must be set so that a wait ends at a time, zero for never; it takes it as set then.
// The present one will do where it is not later, and not so much earlier that too many waits would end too early.
func (d *deadline) move(until time.Time) bool {
	if d.known && d.suffices(until, time.Now()) {
		return false
	}
	d.known, d.at = true, until
	return true
}

func (d *deadline) suffices(until, now time.Time) bool {
	switch {
	case d.at.IsZero():
		return until.IsZero()
	case until.IsZero():
		return d.at.After(now)
	}
	return !d.at.After(until) && d.at.Sub(now) >= until.Sub(now)/8*7
}
