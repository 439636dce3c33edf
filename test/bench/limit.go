// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/aip-gateway/aip-gateway/internal/freeport"
)

// answerSize is about the size of what get answers, in bytes.
const answerSize = 700

// limits measures, in turns, starts and gets, and the fastest that net/http allows on the same machine. For a start,
// that is a server with the same system calls and nothing else: it reads the request, asks the agent, waits for one
// shared sync of a file, and answers. For a get, it is a constant that Caddy answers with.
func limits(ctx context.Context, o settings) error {
	port, err := freeport.Take()
	if err != nil {
		return err
	}
	constant := `{"jsonrpc":"2.0","id":"1","result":"` + strings.Repeat("x", answerSize) + `"}`
	s, err := newSite(ctx, o.caddy, siteConfig{
		fill: filling(ctx, few),
		more: fmt.Sprintf("http://localhost:%d {\n\tbind 127.0.0.1\n\trespond `%s`\n}\n", port, constant),
	})
	if err != nil {
		return err
	}
	defer s.close()
	bare, err := newChild(ctx, bareWord, s.addr(portAgent), filepath.Join(s.dir, "synced"))
	if err != nil {
		return err
	}
	defer bare.close()
	proxied := a2aSend(s, plain, "reverse_proxy", portProxy)
	limit := a2aSend(s, plain, "the limit of a start", portAgent)
	limit.addr = bare.addr
	answered := getOne(s, few)
	answered.name, answered.addr = "the limit of a get", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	answered.want, answered.also = func([]byte, int64) []byte { return nil }, []byte(constant)
	ways := []way{
		{target: proxied, process: s.gateway},
		{target: aipStart(s, plain), process: s.gateway},
		{target: limit, process: bare.cmd},
		{target: getOne(s, few), process: s.gateway},
		{target: answered, process: s.gateway},
	}
	for _, callers := range []int{1, o.conns, 4 * o.conns} {
		rounds, err := inTurns(ctx, o, callers, ways...)
		if err != nil {
			return err
		}
		t := o.table("the limits, to reverse_proxy: "+plural(callers, "connection"),
			"throughput", "least", "greatest", "CPU µs each")
		for i, w := range ways {
			p := pairs{gateway: rounds[i], proxy: rounds[0]}
			t.row(w.target.name, append(spread(p.ratios()), summary(rounds[i])[3])...)
		}
	}
	return nil
}

// bareWord is the argument by which this program is a server with the system calls of a start.
const bareWord = "server-with-the-same-system-calls"

// serveBare is the process. Its arguments are the address of the agent, and the path of the file that it syncs.
func serveBare(args []string) error {
	if len(args) != 2 {
		return errors.New("the arguments are the address of the agent and a path")
	}
	agent := args[0]
	file, err := newSyncedFile(args[1])
	if err != nil {
		return err
	}
	l, err := listen()
	if err != nil {
		return err
	}
	idle := make(chan *agentConn, 1024)
	err = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil {
			panic(http.ErrAbortHandler) // the caller sees that the connection is closed
		}
		var c *agentConn
		select {
		case c = <-idle:
		default:
			conn, err := net.Dial("tcp", agent)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			c = &agentConn{Conn: conn, in: bufio.NewReader(conn)}
		}
		if err := c.ask(body); err != nil {
			c.Close()
			panic(http.ErrAbortHandler)
		}
		if err := file.append(c.answer); err != nil {
			panic(http.ErrAbortHandler)
		}
		w.Header()["Content-Type"] = []string{"application/json"}
		w.Header()["Content-Length"] = []string{strconv.Itoa(len(c.answer))}
		w.Write(c.answer)
		select {
		case idle <- c:
		default:
			c.Close()
		}
	}))
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// agentConn is a connection to the agent.
type agentConn struct {
	net.Conn
	in          *bufio.Reader
	out, answer []byte
}

// ask sends a request and reads its answer.
func (c *agentConn) ask(body []byte) (err error) {
	c.out = fmt.Appendf(c.out[:0],
		"POST / HTTP/1.1\r\nHost: agent\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if _, err = c.Write(c.out); err != nil {
		return err
	}
	c.answer, err = read(c.in, c.answer)
	return err
}

// syncedFile is a file whose writers wait for one sync together.
type syncedFile struct {
	file *os.File
	mu   sync.Mutex
	free sync.Cond // no writer writes
	busy bool
	off  int64
	next *syncRound
}

// syncRound is what one sync is for. done is closed after it.
type syncRound struct {
	buf  []byte
	done chan struct{}
	err  error
}

// syncedSize is the size of the file, in bytes. It is written once before it is used, and from its start again when
// its end is reached, so that a sync is about its content alone.
const syncedSize = 64 << 20

func newSyncedFile(path string) (*syncedFile, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if _, err := file.WriteAt(make([]byte, syncedSize), 0); err != nil {
		return nil, err
	}
	f := &syncedFile{file: file, next: newSyncRound()}
	f.free.L = &f.mu
	return f, file.Sync()
}

func newSyncRound() *syncRound { return &syncRound{done: make(chan struct{})} }

// append writes b and returns when it is synced, together with what others append meanwhile. The first writer of a
// round carries it out.
func (f *syncedFile) append(b []byte) error {
	f.mu.Lock()
	r := f.next
	first := len(r.buf) == 0
	r.buf = append(r.buf, b...)
	if !first {
		f.mu.Unlock()
		<-r.done
		return r.err
	}
	for f.busy {
		f.free.Wait()
	}
	f.busy, f.next = true, newSyncRound()
	if f.off+int64(len(r.buf)) > syncedSize {
		f.off = 0
	}
	at := f.off
	f.off += int64(len(r.buf))
	f.mu.Unlock()
	if _, r.err = f.file.WriteAt(r.buf, at); r.err == nil {
		r.err = syncData(f.file)
	}
	close(r.done)
	f.mu.Lock()
	f.busy = false
	f.free.Signal()
	f.mu.Unlock()
	return r.err
}
