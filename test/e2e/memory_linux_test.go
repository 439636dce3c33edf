// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
)

// maxResident is how much memory the gateway may take with its default limits, in MiB, whatever one Leader reads.
const maxResident = 400

// large is a text of which a large request consists.
var large = strings.Repeat("x", 4<<20-4096)

// peak returns the most memory that the gateway has ever had, in MiB.
func (s *site) peak() int {
	s.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		s.t.Fatalf("the system does not say: %s", status)
	}
	kb, _ := strconv.Atoi(string(m[1]))
	return kb >> 10
}

// held returns what the gateway says that callers hold of one thing.
func (s *site) held(what string) int64 {
	s.t.Helper()
	res, err := http.Get(s.adminURL() + "/debug/vars")
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	var vars struct {
		AIP map[string]int64 `json:"aip"`
	}
	if err := json.NewDecoder(res.Body).Decode(&vars); err != nil {
		s.t.Fatal(err)
	}
	n, ok := vars.AIP[what]
	if !ok {
		s.t.Fatalf("the gateway does not say how much is held of %q", what)
	}
	return n
}

// nothingHeld waits until the gateway counts no memory as held.
func (s *site) nothingHeld() {
	s.t.Helper()
	eventually(s.t, "nothing is held any more", func() bool { return s.held("memory") == 0 })
}

// inMemory fails the test if the gateway has taken too much memory, or counts any as held though nothing is.
func (s *site) inMemory() {
	s.t.Helper()
	s.nothingHeld()
	got := s.peak()
	s.t.Logf("the gateway has had %d MiB", got)
	if got > maxResident {
		s.t.Errorf("the gateway has had %d MiB of memory, and should have had no more than %d", got, maxResident)
	}
}

// TestMemoryOfHangingTurns has one Leader start large tasks at an agent that reads all and never answers.
func TestMemoryOfHangingTurns(t *testing.T) {
	agent := newFakeAgent(t, func(w http.ResponseWriter, r *http.Request, h heard) {
		if h.Method != "tasks/cancel" {
			<-r.Context().Done()
		}
		writeTask(w, h, "canceled", "")
	})
	s := serve(t, config{handle: "aip_gateway a2a/legacy " + agent.url})
	l := leaderOf(t, s.url())
	const tasks = 100
	refused := make([]bool, tasks)
	var all sync.WaitGroup
	for i := range tasks {
		all.Add(1)
		go func() {
			defer all.Done()
			call := startCall(fmt.Sprint("t", i), large)
			call.Terms.Response = time.Millisecond
			_, err := l.try(call)
			var refusal *leader.Error
			switch {
			case err == nil:
			case !errors.As(err, &refusal) || refusal.Code != -32050:
				t.Errorf("start %d: %v", i, explain(err))
			default:
				refused[i] = true
				if members := data(t, refusal.Data); members["limit"] != "memory_per_leader" {
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
			l.cancel(fmt.Sprint("t", i))
		}
	}
	t.Logf("%d of %d starts were taken", taken, tasks)
	if taken < 2 || taken > 12 {
		t.Errorf("%d starts were taken", taken)
	}
	s.inMemory()
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
	_, address := sampleAgent(t)
	for name, command := range map[string]task.Command{"get": task.Get, "stream": task.ReStream} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, config{handle: "aip_gateway a2a/legacy http://" + address})
			l := leaderOf(t, s.url())
			l.start("large", large)
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
			own := []tls.Certificate{keyPair(t, certificates(t).Leader)}
			config := &tls.Config{RootCAs: trusted(t), ServerName: "localhost", Certificates: own}
			const readers = 80 // which would need more than maxResident, and can be served while a call waits for memory
			var all sync.WaitGroup
			for i := range readers {
				all.Go(func() {
					if err := readSlowly(s.port, config, request); err != nil {
						t.Errorf("reader %d: %v", i, err)
					}
				})
			}
			all.Wait()
			l.Close()
			s.inMemory()
		})
	}
}
