// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"io"
	"net"
	"net/http"
)

// giveBack has a server serve a connection. It returns false if the server is shutting down.
func giveBack(server *http.Server, conn net.Conn) bool {
	l := returned{conn: conn}
	_ = server.Serve(&l) // returns after the one connection is accepted
	return l.conn == nil
}

// returned is a listener that accepts one connection.
type returned struct{ conn net.Conn }

func (l *returned) Accept() (net.Conn, error) {
	conn := l.conn
	if conn == nil {
		return nil, io.EOF
	}
	l.conn = nil
	return conn, nil
}

func (l *returned) Close() error   { return nil }
func (l *returned) Addr() net.Addr { return nil }
