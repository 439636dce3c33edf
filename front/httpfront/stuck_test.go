// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// spoken is an agent with a piece of text for each value of a channel, until the task is canceled.
type spoken struct {
	partner.Agent
	pieces chan string
}

func (s spoken) Run(ctx context.Context, _ *agent.Turn, _ bool) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		for more := yield(agent.Report{State: task.Working, Revision: "1"}, nil); more; {
			select {
			case text := <-s.pieces:
				product := task.Product{ID: "p", DataItems: []task.DataItem{task.Text(text)}}
				more = yield(agent.Report{Chunks: []task.Chunk{{Append: true, Product: product}}}, nil)
			case <-ctx.Done():
				more = false
			}
		}
	}
}

func (spoken) Cancel(context.Context, *agent.Turn) (agent.Report, error) {
	return agent.Report{State: task.Canceled, Revision: "2"}, nil
}

// TestACallerThatNeverReads: two of a hundred followers of a task read nothing, or the only one does. The others
// receive every event while the agent sends it, and calls are answered. One of the two has a short time limit of a
// write, and is cut at it. The limit of the other one is longer than the test: it is there while every piece is sent,
// so a gateway with calls or readers waiting for its cut never passes. The limit of the readers is as long: no slow
// machine makes one of them late.
func TestACallerThatNeverReads(t *testing.T) {
	const pieces = 40
	takesOver := func(h *setup) { h.takeOver(func() func() { return func() {} }) }
	for name, c := range map[string]struct {
		readers   int // besides the two; without readers, the one with the short limit is alone
		tls       bool
		takesOver func(*setup)
	}{
		"plain":                    {98, false, func(*setup) {}},
		"plain, taken over":        {98, false, takesOver},
		"plain, taken over, alone": {0, false, takesOver},
		"TLS":                      {98, true, func(*setup) {}},
		"TLS, alone":               {0, true, func(*setup) {}},
		"TLS, taken over":          {98, true, takesOver},
		"TLS, taken over, alone":   {0, true, takesOver},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			speaks := spoken{pieces: make(chan string)}
			h := openSite(t, c.takesOver, func(h *setup) {
				h.Partner.Agent, h.front.WriteTimeout = speaks, time.Hour
				h.Partner.MaxBytes, h.Streaming.Max, h.Streaming.MaxPerLeader = 16<<20, 200, 200
			})
			hasty := h.setup
			hasty.front.WriteTimeout = 5 * time.Second
			impatient := New(h.gateway, hasty.front)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Host == "short" {
					impatient.ServeHTTP(w, r)
				} else {
					h.ServeHTTP(w, r)
				}
			}))
			server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
				under := c
				if over, ok := c.(interface{ NetConn() net.Conn }); ok {
					under = over.NetConn()
				}
				if err := under.(*net.TCPConn).SetWriteBuffer(16 << 10); err != nil {
					t.Error(err)
				}
				return WithConnection(ctx, c)
			}
			if c.tls {
				server.StartTLS()
			} else {
				server.Start()
			}
			defer closeServer(server)
			post := func(path, body string) string {
				t.Helper()
				res, err := server.Client().Post(server.URL+path, "application/json", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				line, _ := bufio.NewReader(res.Body).ReadString('\n')
				return line
			}
			post("/stream", message("stream", "start", "t1", "hello"))

			again := message("stream", "re-stream", "t1", "")
			stuck := int64(0)
			neverReads := func(host string) net.Conn {
				t.Helper()
				conn, err := net.Dial("tcp", server.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { conn.Close() })
				if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
					t.Fatal(err)
				}
				if c.tls {
					conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
				}
				const head = "POST /stream HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s"
				fmt.Fprintf(conn, head, host, len(again), again)
				stuck++
				asynctest.Eventually(t, "its stream is open", func() bool { return h.streams() == stuck })
				return conn
			}
			neverReads("short")
			var long net.Conn
			if c.readers > 0 {
				long = neverReads("long")
			}

			received := make(chan int, c.readers)  // the number of a reader's pieces
			sums := make(chan [32]byte, c.readers) // of everything received by a reader
			for range c.readers {
				go func() {
					sum, seen := sha256.New(), 0
					defer func() { sums <- [32]byte(sum.Sum(nil)) }()
					res, err := server.Client().Post(server.URL+"/stream", "application/json", strings.NewReader(again))
					if err != nil {
						t.Error(err)
						return
					}
					defer res.Body.Close()
					for lines := bufio.NewReaderSize(res.Body, 64<<10); ; {
						line, err := lines.ReadString('\n')
						sum.Write([]byte(line))
						if err != nil {
							if seen < pieces {
								t.Errorf("a stream has ended after %d pieces: %v", seen, err)
							}
							return
						}
						if strings.Contains(line, "error") {
							t.Errorf("a reader has received %.300s", line)
						}
						if strings.Contains(line, "product-chunk") {
							seen++
							received <- seen
						}
					}
				}()
			}
			open := int64(c.readers) + stuck
			asynctest.Eventually(t, "all streams are open", func() bool { return h.streams() == open })
			for i := range pieces {
				speaks.pieces <- strings.Repeat("x", 2<<10<<(i%5)) // 2 to 32 KiB
				for range c.readers {
					if got := <-received; got != i+1 {
						t.Fatalf("a reader has %d pieces, want %d", got, i+1)
					}
				}
				if got := post("/rpc", message("rpc", "get", "t1", "")); !strings.Contains(got, `"working"`) {
					t.Fatalf("a get was answered with %.300s", got)
				}
			}
			asynctest.Eventually(t, "the one with the short limit alone is cut", func() bool {
				return h.streams() == open-1
			})
			if long != nil {
				long.Close()
			}
			asynctest.Eventually(t, "only the streams that are read are open", func() bool {
				return h.streams() == int64(c.readers)
			})
			if got := post("/rpc", message("rpc", "cancel", "t1", "")); !strings.Contains(got, `"canceled"`) {
				t.Errorf("a cancel was answered with %.300s", got)
			}
			var first [32]byte
			for i := range c.readers {
				if sum := <-sums; i == 0 {
					first = sum
				} else if sum != first {
					t.Error("two readers have received different bytes")
				}
			}
			asynctest.Eventually(t, "no stream is open or holds memory", func() bool {
				return h.streams() == 0 && h.setup.Process.Memory.Total() == 0
			})
		})
	}
}
