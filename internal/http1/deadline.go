// SPDX-License-Identifier: Apache-2.0

package http1

import "time"

// deadline is a deadline set for a connection; of the zero deadline nothing is known. To move it for every request and
// every read costs more than to begin a wait again after too early an end, so it is moved only if necessary.
type deadline struct {
	known bool
	at    time.Time // zero for none
}

// move reports whether the deadline must be set for a wait to end at a time, zero for never, or before; the deadline
// counts as set then.
func (d *deadline) move(until time.Time) bool {
	if d.known && (until.IsZero() || !d.at.IsZero() && !d.at.After(until)) {
		return false
	}
	d.known, d.at = true, until
	return true
}
