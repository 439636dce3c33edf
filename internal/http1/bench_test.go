// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
)

// BenchmarkAnswer measures the cost of reading an answer, without a connection.
func BenchmarkAnswer(b *testing.B) {
	one := []byte(begin + "Content-Type: application/json\r\nContent-Length: 200\r\n" +
		"Date: Sun, 22 Nov 2026 12:00:30 GMT\r\n\r\n" + strings.Repeat("x", 200))
	src := bytes.NewReader(nil)
	c := NewConn(source{Reader: src})
	body := make([]byte, 256)
	b.ReportAllocs()
	for b.Loop() {
		src.Reset(one)
		c.Begin(time.Minute)
		err := c.ReadHead()
		if err == nil {
			_, err = io.ReadFull(c, body[:200])
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
