// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"crypto/tls"
	"errors"
	"net"
)

// Secure returns a connection of TLS over a just opened one, for NewConn. Only such a connection of TLS is used again:
// the bytes TLS has read ahead of another one are not known.
func Secure(conn net.Conn, config *tls.Config) *tls.Conn {
	return tls.Client(&records{Conn: conn}, config)
}

// records is a connection below TLS. TLS reads from it whatever there is, and so perhaps more than the records whose
// content it has given away: bytes sent by a server behind an answer are then neither at the system nor in the buffer
// of a Conn. So records knows whether all of the last record was read, and can have TLS read only what it holds
// already.
type records struct {
	net.Conn
	held bool // nothing more is read: Read returns errHeld

	header [5]byte // of a record (RFC 8446, section 5.1)
	known  int     // read bytes of the header
	left   int     // bytes of the record's content not read
	one    [1]byte // room for the read of empty
}

// Read implements net.Conn.
func (r *records) Read(p []byte) (int, error) {
	if r.held {
		return 0, errHeld
	}
	n, err := r.Conn.Read(p)
	r.follow(p[:n])
	return n, err
}

// follow takes note of read bytes.
func (r *records) follow(p []byte) {
	for len(p) > 0 {
		if r.left > 0 {
			n := min(r.left, len(p))
			r.left, p = r.left-n, p[n:]
			continue
		}
		n := copy(r.header[r.known:], p)
		p = p[n:]
		if r.known += n; r.known == len(r.header) {
			r.known, r.left = 0, int(r.header[3])<<8|int(r.header[4])
		}
	}
}

// empty reports whether TLS, above r, holds nothing of the server: no unread content, no end, and no part of a record.
func (r *records) empty(above net.Conn) bool {
	r.held = true
	n, err := above.Read(r.one[:])
	r.held = false
	return n == 0 && errors.Is(err, errHeld) && r.known == 0 && r.left == 0
}

// errHeld is the error of a read below TLS for more than TLS holds. It is temporary, so TLS goes on after it.
var errHeld net.Error = heldError{}

type heldError struct{}

func (heldError) Error() string   { return "http1: nothing more is read" }
func (heldError) Timeout() bool   { return true }
func (heldError) Temporary() bool { return true }
