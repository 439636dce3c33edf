// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
)

// reread is a connection some bytes of which are read once more.
type reread struct {
	net.Conn
	first []byte
}

// readAgain returns a connection of which some bytes are read once more.
func readAgain(c net.Conn, b []byte) net.Conn {
	if len(b) == 0 {
		return c
	}
	again := reread{c, bytes.Clone(b)}
	if secure, ok := c.(overTLS); ok { // tls.Conn, or one that was given back before
		return &secureReread{again, secure}
	}
	return &again
}

// Read implements net.Conn.
func (c *reread) Read(p []byte) (int, error) {
	if len(c.first) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.first)
	c.first = c.first[n:]
	return n, nil
}

// NetConn returns the connection below, as that of a tls.Conn does.
func (c *reread) NetConn() net.Conn { return c.Conn }

// CloseWrite closes the side that is written, which net/http does before it closes some connections.
func (c *reread) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// secureReread is that over TLS.
type secureReread struct {
	reread
	secure overTLS
}

// overTLS is a connection over TLS.
type overTLS interface{ ConnectionState() tls.ConnectionState }

// ConnectionState is what net/http asks for, and what makes http.Request.TLS.
func (c *secureReread) ConnectionState() tls.ConnectionState { return c.secure.ConnectionState() }
