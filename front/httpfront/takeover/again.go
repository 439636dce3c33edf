// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
)

// reread is a connection with some bytes to be read once more.
type reread struct {
	net.Conn
	first []byte
}

// readAgain returns a connection with some bytes to be read once more.
func readAgain(c net.Conn, b []byte) net.Conn {
	if len(b) == 0 {
		return c
	}
	again := reread{c, bytes.Clone(b)}
	if secure, ok := c.(overTLS); ok { // tls.Conn, or one given back before
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

// NetConn returns the connection below, as a tls.Conn does.
func (c *reread) NetConn() net.Conn { return c.Conn }

// CloseWrite closes the written side, as net/http does before it closes some connections.
func (c *reread) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// secureReread is a reread over TLS.
type secureReread struct {
	reread
	secure overTLS
}

// overTLS is a connection over TLS.
type overTLS interface{ ConnectionState() tls.ConnectionState }

// ConnectionState is called by net/http, for http.Request.TLS.
func (c *secureReread) ConnectionState() tls.ConnectionState { return c.secure.ConnectionState() }
