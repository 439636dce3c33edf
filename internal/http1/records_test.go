// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"
)

// scripted is a connection with replaceable bytes: those read from it, and those written to it.
type scripted struct {
	net.Conn
	in  io.Reader     // nil for the connection's own
	out *bytes.Buffer // nil for the connection's own
}

func (s *scripted) Read(p []byte) (int, error) {
	if s.in != nil {
		return s.in.Read(p)
	}
	return s.Conn.Read(p)
}

func (s *scripted) Write(p []byte) (int, error) {
	if s.out != nil {
		return s.out.Write(p)
	}
	return s.Conn.Write(p)
}

// overTLS returns a connection with the bytes sent by a server by TLS, all of them in one segment. After it, the server
// is silent, or has closed the connection.
func overTLS(t *testing.T, send func(*tls.Conn), silent bool) *Conn {
	t.Helper()
	plain, other := net.Pipe()
	client, server := &scripted{Conn: plain}, &scripted{Conn: other}
	out, in := secured(t, client, server)
	server.out = new(bytes.Buffer)
	send(in)
	client.in = server.out
	if silent {
		client.in = io.MultiReader(server.out, silence{})
	}
	client.out = new(bytes.Buffer)
	return NewConn(out)
}

// silence is the output of a server sending nothing.
type silence struct{}

func (silence) Read([]byte) (int, error) { return 0, heldError{} }

// TestAheadInTLS: a connection is not used again if TLS has read ahead anything unasked, be it an end or a part of a
// record.
func TestAheadInTLS(t *testing.T) {
	write := func(data string) func(*tls.Conn) {
		return func(s *tls.Conn) { io.WriteString(s, data) }
	}
	for _, tc := range []struct {
		name   string
		after  func(*tls.Conn)
		reused bool
	}{
		{"nothing", func(*tls.Conn) {}, true},
		{"an empty record", write(""), true},
		{"a second answer", write(short), false},
		{"a bit of a second answer", write("H"), false},
		{"an empty line", write("\r\n"), false},
		{"an end", func(s *tls.Conn) { s.CloseWrite() }, false},
		{"half a header of a record", func(s *tls.Conn) { s.NetConn().Write([]byte{23, 3, 3}) }, false},
		{"half a record", func(s *tls.Conn) { s.NetConn().Write([]byte{23, 3, 3, 1, 0, 'x'}) }, false},
		{"bytes that are no record", func(s *tls.Conn) { io.WriteString(s.NetConn(), short) }, false},
	} {
		for name, parts := range map[string][]string{
			"": {short}, ", in records": {short[:5], short[5 : len(short)-1], short[len(short)-1:]},
		} {
			c := overTLS(t, func(s *tls.Conn) {
				for _, part := range parts {
					io.WriteString(s, part)
				}
				tc.after(s)
			}, true)
			c.Begin(time.Minute)
			if err := c.ReadHead(); err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(c); string(body) != "ok" || err != nil {
				t.Fatalf("%q, %v", body, err)
			}
			p := NewPool(1, time.Hour)
			p.Put(c)
			if again := p.take(); (again != nil) != tc.reused {
				t.Errorf("%s%s: the connection can be used again: %v", tc.name, name, again != nil)
			}
		}
	}
}

// TestPartOfARecord: a connection is not used again if a part of a record has come while it was idle.
func TestPartOfARecord(t *testing.T) {
	for name, connect := range map[string]func() (client, server net.Conn){
		"TCP": func() (client, server net.Conn) { return tcp(t) },
		"a pipe": func() (client, server net.Conn) {
			client, server = net.Pipe()
			return &scripted{Conn: client}, server
		},
	} {
		plain, other := connect()
		client, server := secured(t, plain, other)
		c, p := NewConn(client), NewPool(1, time.Hour)
		if got := exchange(t, c, server, short); got != "ok" {
			t.Errorf("the answer is %q", got)
		}
		p.Put(c)
		other.Write([]byte{23, 3, 3})
		for c.socket.known() && c.socket.quiet() {
		}
		if pipe, ok := plain.(*scripted); ok {
			pipe.out = new(bytes.Buffer) // the close of the connection is not read
		}
		if p.Get() != nil {
			t.Errorf("%s: the connection is used again", name)
		}
		other.Close()
	}
}

// TestOtherTLS: a connection is not used again if its TLS is not by Secure.
func TestOtherTLS(t *testing.T) {
	plain, other := tcp(t)
	in := tls.Server(other, &tls.Config{Certificates: certificate()})
	defer in.Close()
	c := NewConn(tls.Client(plain, &tls.Config{InsecureSkipVerify: true}))
	if got := exchange(t, c, in, short); got != "ok" {
		t.Errorf("the answer is %q", got)
	}
	p := NewPool(1, time.Hour)
	if p.Put(c); p.Get() != nil {
		t.Error("the connection is used again")
	}
}

// FuzzAnswerOverTLS is FuzzAnswer over TLS, with the decision about the connection: an answer has the same meaning over
// TLS as without, however it is cut into records, and the connection is used again if nothing follows the answer.
func FuzzAnswerOverTLS(f *testing.F) {
	for _, tc := range answers {
		if len(tc.answer) < 4<<10 {
			f.Add([]byte(tc.answer), uint8(0))
			f.Add([]byte(tc.answer), uint8(3))
		}
	}
	for _, after := range []string{short, "\r\n", "x", "0\r\n\r\n"} {
		f.Add([]byte(short+after), uint8(len(short)))
	}
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		c := overTLS(t, func(s *tls.Conn) {
			for rest := data; len(rest) > 0; {
				n := len(rest)
				if size > 0 {
					n = min(n, int(size))
				}
				s.Write(rest[:n])
				rest = rest[n:]
			}
		}, false)
		plain, secure := readAnswer(bytes.NewReader(data)), result{}
		c.Begin(time.Minute)
		if secure.err = c.ReadHead(); secure.err == nil {
			var body []byte
			body, secure.err = io.ReadAll(c)
			secure.status, secure.body = c.Status, string(body)
			secure.reusable = c.reusable()
		}
		if plain.err != nil || secure.err != nil {
			if plain.err == nil || secure.err == nil {
				t.Errorf("%v, but over TLS %v", plain, secure)
			}
			return
		}
		if plain != secure {
			t.Errorf("%v, but over TLS %v", plain, secure)
		}
	})
}
