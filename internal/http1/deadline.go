// SPDX-License-Identifier: Apache-2.0

package http1

import "time"

// deadline is one that is set for a connection; of the zero deadline nothing is known. To move it for every request and
// every read costs more than a wait that ends too early and is begun again, so it is moved when it has to be.
type deadline struct {
	known bool
	at    time.Time // zero for none
}

// move reports whether the deadline must be set so that a wait ends at a time, zero for never, or before; the deadline
// counts as set then.
func (d *deadline) move(until time.Time) bool {
	if d.known && (until.IsZero() || !d.at.IsZero() && !d.at.After(until)) {
		return false
	}
	d.known, d.at = true, until
	return true
}
