// SPDX-License-Identifier: Apache-2.0

package bufpool

// Gather gathers bytes without knowing their number before the last one has come. Until then, more than the largest
// buffer of the pool lies in several of them, so an endless text leaves no garbage. The zero value with a pool is
// empty. One goroutine at a time may use it.
type Gather struct {
	Pool *Pool

	full []*[]byte // before last, each of the largest size
	last *[]byte   // nil before the first byte
	n    int       // bytes in full
}

// Room returns the room for the next bytes; it is never empty. Add follows.
func (g *Gather) Room() []byte {
	switch {
	case g.last == nil:
		g.last = g.Pool.Get()
	case len(*g.last) < cap(*g.last):
	case cap(*g.last) < g.Pool.Largest:
		*g.last = Grow(*g.last, g.Pool.Largest)
	default:
		g.full, g.n = append(g.full, g.last), g.n+len(*g.last)
		if g.last = g.Pool.Get(); cap(*g.last) < g.Pool.Largest {
			*g.last = make([]byte, 0, g.Pool.Largest)
		}
	}
	return (*g.last)[len(*g.last):cap(*g.last)]
}

// Add counts so many bytes as written to the last result of Room.
func (g *Gather) Add(n int) { *g.last = (*g.last)[:len(*g.last)+n] }

// Len returns the number of bytes.
func (g *Gather) Len() int {
	if g.last == nil {
		return 0
	}
	return g.n + len(*g.last)
}

// Bytes returns all bytes, valid until Release. Room and Add do not follow.
func (g *Gather) Bytes() []byte {
	if g.last == nil {
		return nil
	}
	if len(g.full) > 0 {
		whole := make([]byte, 0, g.Len())
		for _, b := range append(g.full, g.last) {
			whole = append(whole, *b...)
			g.Pool.Put(b)
		}
		g.full, g.n, g.last = nil, 0, &whole
	}
	return *g.last
}

// Release gives the buffers back. It may be called again.
func (g *Gather) Release() {
	for _, b := range g.full {
		g.Pool.Put(b)
	}
	if g.last != nil {
		g.Pool.Put(g.last)
	}
	g.full, g.n, g.last = nil, 0, nil
}
