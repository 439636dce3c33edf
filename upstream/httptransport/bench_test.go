// SPDX-License-Identifier: Apache-2.0

package httptransport_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/upstream"
)

// BenchmarkExchange measures one exchange with an agent in the same process, by one goroutine and by many at once, as
// the driver of turns makes them: with an interrupt, and without one.
func BenchmarkExchange(b *testing.B) {
	answer := answered(`{"jsonrpc":"2.0","id":1,"result":{"id":"t","status":{"state":"completed"}}}`)
	body := strings.Repeat("x", 300)
	for name, many := range map[string]int{"one": 0, "many": 16} {
		for kind, interrupt := range map[string]bool{"context": false, "interrupt": true} {
			b.Run(name+", "+kind, func(b *testing.B) {
				a := newRawAgent(b, "http", func(conn net.Conn, in *bufio.Reader, _ int) {
					request := 0
					for {
						if request == 0 { // they are all the same
							head := 0
							for line := ""; line != "\r\n"; head += len(line) {
								var err error
								if line, err = in.ReadString('\n'); err != nil {
									return
								}
							}
							in.Discard(len(body))
							request = head + len(body)
						} else if _, err := in.Discard(request); err != nil {
							return
						}
						io.WriteString(conn, answer)
					}
				})
				transport := a.transport(b)
				run := func(next func() bool) {
					req := requestOf(body)
					for next() {
						if interrupt {
							req.Interrupt = new(upstream.Interrupt)
						}
						if _, err := send(b.Context(), transport, req); err != nil {
							b.Error(err)
							return
						}
					}
				}
				b.ReportAllocs()
				if many == 0 {
					run(b.Loop)
					return
				}
				b.SetParallelism(many)
				b.RunParallel(func(pb *testing.PB) { run(pb.Next) })
			})
		}
	}
}
