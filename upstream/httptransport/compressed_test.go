// SPDX-License-Identifier: Apache-2.0

package httptransport_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/upstream"
)

// TestCompressed: an answer compressed by gzip, unasked, is read as if it were not.
//
// Lenient: an answer or a stream compressed by gzip
func TestCompressed(t *testing.T) {
	compressed := func(content string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		io.WriteString(z, content)
		z.Close()
		return b.String()
	}
	head := func(kind string) string {
		return "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Type: " + kind + "\r\n"
	}
	stream := make(chan struct{})
	agent := newRawAgent(t, "http", func(conn net.Conn, in *bufio.Reader, _ int) {
		for {
			asked, err := readRequest(in)
			if err != nil {
				return
			}
			switch content := compressed(asked); asked {
			case "stream":
				io.WriteString(conn, head("text/event-stream")+"\r\n")
				z := gzip.NewWriter(conn)
				io.WriteString(z, "data: 1\n\n")
				z.Flush()
				<-stream // the first event is read before there is more
				io.WriteString(z, "data: 2\n\n")
				z.Close()
				return
			case "plain":
				content = asked
				fallthrough
			default:
				fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n%s", head("application/json"), len(content), content)
			}
		}
	})
	agent.MaxReply = 1000
	transport := agent.transport(t)
	for _, tc := range []struct{ asked, want, err string }{
		{"hello", "hello", "<nil>"},
		{strings.Repeat("x", 1000), strings.Repeat("x", 1000), "<nil>"},
		{strings.Repeat("x", 100_000), "", "invalid-agent-response: the agent's answer is larger than 1000 bytes"},
		{"plain", "", "invalid-agent-response: the agent's answer says that it is compressed by gzip, and is not"},
	} {
		got, err := send(t.Context(), transport, requestOf(tc.asked))
		if got != tc.want || fmt.Sprint(err) != tc.err {
			t.Errorf("%.10s… is answered %.10q…, %v", tc.asked, got, err)
		}
	}
	request := requestOf("stream")
	x, err := transport.Routes(request.Operation)[0].Open(t.Context(), request)
	if err == nil {
		err = x.Begin()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close(nil)
	m, err := x.Next()
	got := string(m.Data)
	close(stream)
	if err == nil {
		m, err = x.Next()
		got += string(m.Data)
	}
	if got != "12" || err != nil {
		t.Errorf("the stream is read as %q, %v", got, err)
	}
	if _, err := x.Next(); upstream.ReasonOf(err) != upstream.StreamCut {
		t.Errorf("its end is %v", err)
	}
}
