// SPDX-License-Identifier: Apache-2.0

package httptransport

import (
	"bytes"
	"io"
)

// content returns the Body and the GetBody of an http.Request. net/http calls GetBody when it sends a request again,
// after the agent has closed the idle connection that the request was to be sent on. Where again is nil, the body is
// kept until the agent has answered, in a reader that net/http recognizes as memory, so that it sends head and body in
// one write.
func content(body []byte, again func() []byte) (io.ReadCloser, func() (io.ReadCloser, error)) {
	if again != nil {
		return &releasingReader{body}, func() (io.ReadCloser, error) { return &releasingReader{again()}, nil }
	}
	read := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	first, _ := read()
	return first, read
}

// releasingReader reads a body that is released as soon as it is sent, since the agent may take long to answer.
type releasingReader struct{ rest []byte }

// Read implements io.Reader.
func (s *releasingReader) Read(p []byte) (int, error) {
	n := copy(p, s.rest)
	if s.rest = s.rest[n:]; len(s.rest) == 0 {
		s.rest = nil
		return n, io.EOF
	}
	return n, nil
}

// Close implements io.Closer. It leaves the body alone, since the transport may still be reading it.
func (s *releasingReader) Close() error { return nil }
