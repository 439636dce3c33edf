// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
)

// between returns what stands between two texts.
func between(b []byte, before, after string) []byte {
	_, b, _ = bytes.Cut(b, []byte(before))
	b, _, _ = bytes.Cut(b, []byte(after))
	return b
}

// message is an HTTP/1.1 message with a Content-Length, that is read into a buffer which is used again.
type message struct{ buf []byte }

// read reads the next message of a connection, and returns its body.
func (m *message) read(conn net.Conn) ([]byte, error) {
	for m.buf = m.buf[:0]; ; {
		if head, body, ok := bytes.Cut(m.buf, []byte("\r\n\r\n")); ok {
			n, err := strconv.Atoi(string(between(append(head, '\r'), "Content-Length: ", "\r")))
			if err != nil || len(body) >= n {
				return body, err
			}
		}
		n, err := conn.Read(m.buf[len(m.buf):cap(m.buf)])
		if m.buf = m.buf[:len(m.buf)+n]; err != nil {
			return nil, err
		}
	}
}

// textIn returns the text of the only part of a message, as it stands in the JSON of a request.
func textIn(asked []byte) []byte {
	_, text, _ := bytes.Cut(asked, []byte(`"parts":[{"type":"text","text":"`))
	return text[:bytes.LastIndex(text, []byte(`"}]`))]
}

// promptAgent returns the URL of an agent of A2A v0.1 that answers every message at once with its text, and allocates
// nothing for it.
func promptAgent(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		serving.Wait()
	})
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				in, answer, out := message{make([]byte, 0, maxStart)}, []byte(nil), []byte(nil)
				for {
					asked, err := in.read(conn)
					if err != nil {
						return
					}
					answer = append(append(answer[:0], `{"jsonrpc":"2.0","id":"`...), between(asked, `"id":"`, `"`)...)
					answer = append(append(answer, `","result":{"id":"`...), between(asked, `"params":{"id":"`, `"`)...)
					answer = append(answer, `","status":{"state":"completed","message":{"role":"agent","parts":[{"type":"text",`+
						`"text":"done"}]}},"artifacts":[{"index":0,"parts":[{"type":"text","text":"echo: `...)
					answer = append(append(answer, textIn(asked)...), `"}]}]}}`...)
					out = append(out[:0], "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "...)
					out = append(append(strconv.AppendInt(out, int64(len(answer)), 10), "\r\n\r\n"...), answer...)
					if _, err := conn.Write(out); err != nil {
						return
					}
				}
			})
		}
	})
	return "http://" + l.Addr().String()
}

// maxStart is more than the size of any request or answer of starts, in bytes.
const maxStart = 256 << 10

// starts returns a function that makes one call: a start that its agent answers at once with the same text, by Caddy's
// server over HTTP/1.1, with the store on disk. The caller and the agent allocate nothing for it. text is escaped for
// JSON.
func starts(t *testing.T, text string) (call func()) {
	s := newSite(t)
	s.agent = promptAgent(t)
	s.mustLoad(s.config("", ""))
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	const first = 100000 // all ids have the same length
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"rpc","params":{"message":{"type":"message","id":"m",`+
		`"sentAt":"2025-09-01T11:58:00+08:00","senderRole":"leader","senderId":"leader","command":"start",`+
		`"dataItems":[{"type":"text","text":"%s"}],"sessionId":"session-1","taskId":"%d"}}}`, text, first)
	request := fmt.Appendf(nil, "POST /rpc HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%s", s.addr, len(body), body)
	id := len(request) - len(`100000"}}}`)
	answer := message{make([]byte, 0, maxStart)}
	n := int64(first)
	return func() {
		n++
		strconv.AppendInt(request[:id], n, 10)
		_, err := conn.Write(request)
		if err == nil {
			_, err = answer.read(conn)
		}
		if err != nil || !bytes.Contains(answer.buf, []byte(`"awaiting-completion"`)) {
			t.Fatalf("%v: %.1000s", err, answer.buf)
		}
	}
}

// TestStartBudget: a whole start makes no more than a given number of allocations, of which net/http and Caddy make 74,
// and the race detector, which drops what is pooled, some more.
func TestStartBudget(t *testing.T) {
	const budget = 160
	if n := testing.AllocsPerRun(500, starts(t, "hello")); n > budget {
		t.Errorf("a start makes %v allocations, want at most %d", n, budget)
	}
}
