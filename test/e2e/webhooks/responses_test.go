// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// resets breaks the connection.
func resets() site.Response {
	return site.Response{Taken: false, Write: func(conn net.Conn) bool {
		if c, ok := conn.(*net.TCPConn); ok {
			_ = c.SetLinger(0)
		}
		return false
	}}
}

// saysOnly writes these words and closes the connection.
func saysOnly(words string) site.Response {
	return site.Response{Taken: false, Write: func(conn net.Conn) bool {
		_, _ = io.WriteString(conn, words)
		return false
	}}
}

// slowly takes the notification, a byte at a time.
func slowly() site.Response {
	return site.Response{Taken: true, Write: func(conn net.Conn) bool {
		pace := time.NewTicker(5 * time.Millisecond)
		defer pace.Stop()
		for _, b := range []byte("HTTP/1.1 204 No Content\r\n\r\n") {
			<-pace.C
			if _, err := conn.Write([]byte{b}); err != nil {
				return false
			}
		}
		return true
	}}
}

// verbosely answers with a status and a body that is larger than the gateway reads.
func verbosely(status int) site.Response {
	return site.Response{Taken: status == 200, Write: func(conn net.Conn) bool {
		_, err := fmt.Fprintf(conn, "HTTP/1.1 %d Oh\r\nContent-Length: %d\r\n\r\n", status, 64<<20)
		for words := bytes.Repeat([]byte("and so on "), 1000); err == nil; {
			_, err = conn.Write(words)
		}
		return false
	}}
}

// endlessly takes the notification, but its answer has no end.
func endlessly() site.Response {
	return site.Response{Taken: true, Write: func(conn net.Conn) bool {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nand")
		_, _ = io.Copy(io.Discard, conn)
		return false
	}}
}
