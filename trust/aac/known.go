// SPDX-License-Identifier: Apache-2.0

package aac

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/aip-gateway/aip-gateway/identity"
)

// delegations remembers what was read of the claims of tokens, most of which come with many calls. It may be used by
// any number of goroutines at once.
type delegations struct {
	seed   maphash.Seed
	places [256]atomic.Pointer[known] // each holds one: after a collision, claims are read again
}

// known is what readDelegation has returned for claims.
type known struct {
	claims     *identity.Claims // of a verifier, which has the same for a token that it remembers
	delegation delegation
	err        error
}

// of is readDelegation.
func (ds *delegations) of(c *identity.Claims) (delegation, error) {
	place := &ds.places[maphash.String(ds.seed, c.JSON)%uint64(len(ds.places))]
	k := place.Load()
	if k == nil || k.claims != c {
		k = &known{claims: c}
		k.delegation, k.err = readDelegation(c)
		place.Store(k)
	}
	return k.delegation, k.err
}
