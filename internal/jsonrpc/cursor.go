// SPDX-License-Identifier: Apache-2.0

package jsonrpc

// Cursor reads a JSON value of a known shape, in one pass and without a copy. It is as strict as Parse: if all of its
// methods have returned true, and End as the last of them, the value is valid. After one has returned false, it must
// not be used any more. It is used by one goroutine.
type Cursor struct {
	s  scanner
	at int
}

// CursorAt returns a Cursor at an offset of body.
func CursorAt(body []byte, offset int) Cursor { return Cursor{s: scanner{body: body}, at: offset} }

// Offset returns the number of bytes read of the body.
func (c *Cursor) Offset() int { return c.at }

// NewCursor returns a Cursor at the beginning of body. body must not be changed while the Cursor, or anything returned
// by it, is used.
func NewCursor(body []byte) Cursor { return Cursor{s: scanner{body: body}} }

// Names are the possible members of an object, in the expected order. They are ASCII without escapes, and no more than
// 64.
type Names []string

// Object reads an object with members of these names only, each of them at most once. It calls member for each member
// other than null, with its place in names; member reads the value, and returns false to end the reading.
func (c *Cursor) Object(names Names, member func(i int) bool) bool {
	if !c.char('{') {
		return false
	}
	var seen uint64
	for next := 0; ; {
		i := c.name(names, next)
		if i < 0 || seen&(1<<i) != 0 || !c.char(':') {
			return false
		}
		seen |= 1 << i
		next = i + 1
		if !c.null() && !member(i) {
			return false
		}
		if !c.char(',') {
			return c.char('}')
		}
	}
}

// name reads the name of a member, and returns its index in names, most often the next one. It returns -1 for any other
// name.
func (c *Cursor) name(names Names, next int) int {
	if !c.char('"') {
		return -1
	}
	rest := c.s.body[c.at:]
	for range names {
		if next >= len(names) {
			next = 0
		}
		if n := len(names[next]); len(rest) > n && rest[n] == '"' && string(rest[:n]) == names[next] {
			c.at += n + 1
			return next
		}
		next++
	}
	return -1
}

// Only reads an array with one entry, read by entry.
func (c *Cursor) Only(entry func() bool) bool { return c.char('[') && entry() && c.char(']') }

// String reads a string, and returns the bytes between its quotes. escaped reports whether they have escapes.
func (c *Cursor) String() (raw []byte, escaped, ok bool) {
	if c.skip(); c.at >= len(c.s.body) || c.s.body[c.at] != '"' {
		return nil, false, false
	}
	end, has := c.s.str(c.at)
	if end < 0 {
		return nil, false, false
	}
	raw = c.s.body[c.at+1 : end-1]
	c.at = end
	return raw, has != 0, true
}

// Bool reads a boolean.
func (c *Cursor) Bool() (v, ok bool) {
	c.skip()
	if c.literal("true") {
		return true, true
	}
	return false, c.literal("false")
}

// Int reads an integer from 0 to 999,999,999,999,999 written without a fraction or an exponent.
func (c *Cursor) Int() (n int64, ok bool) {
	c.skip()
	rest := c.s.body[c.at:]
	i := 0
	for i < len(rest) && i <= 15 && rest[i] >= '0' && rest[i] <= '9' {
		n = 10*n + int64(rest[i]-'0')
		i++
	}
	if i == 0 || i > 15 || i > 1 && rest[0] == '0' {
		return 0, false
	}
	if i < len(rest) && (rest[i] == '.' || rest[i] == 'e' || rest[i] == 'E') {
		return 0, false
	}
	c.at += i
	return n, true
}

// Scalar reads a string, a number, a boolean or null, whatever its value is.
func (c *Cursor) Scalar() bool {
	if c.skip(); c.at >= len(c.s.body) || c.s.body[c.at] == '{' || c.s.body[c.at] == '[' {
		return false
	}
	end := c.s.value(c.at, 1)
	if end < 0 {
		return false
	}
	c.at = end
	return true
}

// End reports whether nothing follows.
func (c *Cursor) End() bool {
	c.skip()
	return c.at == len(c.s.body)
}

func (c *Cursor) null() bool {
	c.skip()
	return c.literal("null")
}

func (c *Cursor) literal(want string) bool {
	if rest := c.s.body[c.at:]; len(rest) < len(want) || string(rest[:len(want)]) != want {
		return false
	}
	c.at += len(want)
	return true
}

// char reads a character, with the white space before it.
func (c *Cursor) char(want byte) bool {
	if c.skip(); c.at >= len(c.s.body) || c.s.body[c.at] != want {
		return false
	}
	c.at++
	return true
}

// skip skips white space. Mostly there is none.
func (c *Cursor) skip() {
	if c.at < len(c.s.body) && c.s.body[c.at] <= ' ' {
		c.at = c.s.space(c.at)
	}
}
