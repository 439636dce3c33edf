// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"bytes"
	"crypto/x509"
	"encoding/binary"
	"slices"
	"sync/atomic"
	"time"
)

// passFor is the time a chain found good is not judged again, unless lists or answers change: a connection has many
// calls in that time. An end without a change, as of a list becoming too old, is noticed that late.
const passFor = time.Second

// passed remembers the chains found good lately. Each place holds one: after a collision, a chain is judged again. All
// chains are verified, so strangers cannot evict others.
type passed [256]atomic.Pointer[pass]

// pass is a chain found good. It is not changed.
type pass struct {
	chain      []*x509.Certificate
	generation uint64 // of the data it was judged by
	until      time.Time
}

// place returns the place of a chain. A certificate ends with its signature, as good as random.
func (p *passed) place(chain []*x509.Certificate) *atomic.Pointer[pass] {
	raw := chain[0].Raw
	if len(raw) < 4 {
		return &p[0]
	}
	return &p[binary.LittleEndian.Uint32(raw[len(raw)-4:])%uint32(len(p))]
}

// has reports whether the same certificates were found good lately, by the data of a generation.
func (p *passed) has(chain []*x509.Certificate, generation uint64, now time.Time) bool {
	known := p.place(chain).Load()
	return known != nil && known.generation == generation && now.Before(known.until) &&
		slices.EqualFunc(known.chain, chain, same)
}

// same reports whether two certificates are the same. Each connection has a copy of its own of its caller's.
func same(a, b *x509.Certificate) bool { return a == b || bytes.Equal(a.Raw, b.Raw) }

func (p *passed) add(chain []*x509.Certificate, generation uint64, now time.Time) {
	p.place(chain).Store(&pass{chain, generation, now.Add(passFor)})
}
