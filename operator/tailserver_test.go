// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
)

// tailServer serves the streams of a gateway.
type tailServer struct {
	of     *aloneGateway
	server *httptest.Server
}

func newTailServer(p *aloneGateway) *tailServer {
	mux := http.NewServeMux()
	for path, h := range p.handlers {
		mux.Handle(path, h)
	}
	s := &tailServer{p, httptest.NewServer(mux)}
	p.t.Cleanup(s.server.Close)
	return s
}

// tailStream is an open stream.
type tailStream struct {
	of    *aloneGateway
	lines *bufio.Scanner
}

// open opens a stream, behind the last event that a client has seen; until the test ends.
func (s *tailServer) open(target, last string) *tailStream {
	s.of.t.Helper()
	r, err := http.NewRequestWithContext(s.of.t.Context(), "GET", s.server.URL+target, nil)
	if err != nil {
		s.of.t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.of.t.Fatal(err)
	}
	s.of.t.Cleanup(func() { res.Body.Close() })
	return &tailStream{s.of, bufio.NewScanner(res.Body)}
}

// until reads to the line with a text, and returns what it has read.
func (s *tailStream) until(text string) string {
	s.of.t.Helper()
	var read strings.Builder
	for s.lines.Scan() {
		read.WriteString(s.lines.Text() + "\n")
		if strings.Contains(s.lines.Text(), text) {
			return read.String()
		}
	}
	s.of.t.Fatalf("the stream has no %s, but %s: %v", text, read.String(), s.lines.Err())
	return ""
}
