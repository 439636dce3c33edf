// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// large is a text of which a large request consists.
var large = strings.Repeat("x", 4<<20-4096)

// TestMemoryOfHangingTurns has one Leader start large tasks at an agent that reads all and never answers.
func TestMemoryOfHangingTurns(t *testing.T) {
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, r *http.Request, h site.Heard) {
		if h.Method != "tasks/cancel" {
			<-r.Context().Done()
		}
		site.WriteTask(w, h, "canceled", "")
	})
	s := site.Serve(t, site.Config{Handle: "aip_gateway a2a/legacy " + agent.URL})
	l := site.LeaderOf(t, s.URL())
	const tasks = 100
	refused := make([]bool, tasks)
	var all sync.WaitGroup
	for i := range tasks {
		all.Add(1)
		go func() {
			defer all.Done()
			call := site.StartCall(fmt.Sprint("t", i), large)
			call.Terms.Response = time.Millisecond
			_, err := l.Try(call)
			var refusal *leader.Error
			switch {
			case err == nil:
			case !errors.As(err, &refusal) || refusal.Code != -32050:
				t.Errorf("start %d: %v", i, site.Explain(err))
			default:
				refused[i] = true
				if members := site.Data(t, refusal.Data); members["limit"] != "memory_per_leader" {
					t.Errorf("start %d is refused for another limit: %s", i, refusal.Raw)
				}
			}
		}()
	}
	all.Wait()
	taken := 0
	for i := range tasks {
		if !refused[i] {
			taken++
			l.Cancel(fmt.Sprint("t", i))
		}
	}
	t.Logf("%d of %d starts were taken", taken, tasks)
	if taken < 2 || taken > 12 {
		t.Errorf("%d starts were taken", taken)
	}
	inMemory(s)
}

// readSlowly makes a request on a connection of its own, and takes in a large task by small pieces. It returns what is
// wrong with the answer.
func readSlowly(port int, config *tls.Config, request string) error {
	raw, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	raw.(*net.TCPConn).SetReadBuffer(32 << 10)
	conn := tls.Client(raw, config)
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		return err
	}
	res, err := http.ReadResponse(bufio.NewReaderSize(conn, 1<<10), nil)
	if err != nil {
		return err
	}
	var begins []byte
	for n, piece := 0, make([]byte, 32<<10); n < len(large); {
		got, err := res.Body.Read(piece)
		if n += got; len(begins) < 512 {
			begins = append(begins, piece[:got]...)
		}
		if err != nil {
			return fmt.Errorf("after %d bytes, which begin with %.512s: %w", n, begins, err)
		}
	}
	return nil
}

// TestMemoryOfSlowReaders has many callers of one Leader read a large task at the same time, each of them slowly.
//
// Promise: a Leader or an agent uses up memory, disk or connections
func TestMemoryOfSlowReaders(t *testing.T) {
	_, address := site.SampleAgent(t)
	for name, command := range map[string]task.Command{"get": task.Get, "stream": task.ReStream} {
		t.Run(name, func(t *testing.T) {
			s := site.Serve(t, site.Config{Handle: "aip_gateway a2a/legacy http://" + address})
			l := site.LeaderOf(t, s.URL())
			l.Start("large", large)
			path := "/rpc"
			if command == task.ReStream {
				path = "/stream"
			}
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"1","method":%q,"params":{"message":{"type":"message","id":"m",`+
				`"sentAt":"2026-01-01T00:00:00Z","senderRole":"leader","senderId":%q,"command":%q,"taskId":"large",`+
				`"dataItems":[]}}}`,
				path[1:], l.Sender, command)
			request := fmt.Sprintf(
				"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				path,
				len(body),
				body,
			)
			own := []tls.Certificate{devpkitest.KeyPair(t, site.Certificates(t).Leader)}
			config := &tls.Config{RootCAs: site.Trusted(t), ServerName: "localhost", Certificates: own}
			const readers = 80 // which would need more than maxResident, and can be served while a call waits for memory
			var all sync.WaitGroup
			for i := range readers {
				all.Go(func() {
					if err := readSlowly(s.Port, config, request); err != nil {
						t.Errorf("reader %d: %v", i, err)
					}
				})
			}
			all.Wait()
			l.Close()
			inMemory(s)
		})
	}
}
