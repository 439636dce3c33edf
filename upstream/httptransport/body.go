// SPDX-License-Identifier: Apache-2.0

package httptransport

import (
	"bytes"
	"io"
)

// content returns the body of a request as http.Request wants it, and what makes it again: the transport sends again
// what it could not write a byte of, on a connection that was closed while it was idle. A body without again is kept
// until the agent has answered, and sent at once with the head, which the transport does only with readers that it
// knows to be in memory.
func content(body []byte, again func() []byte) (io.ReadCloser, func() (io.ReadCloser, error)) {
	if again != nil {
		return &sending{body}, func() (io.ReadCloser, error) { return &sending{again()}, nil }
	}
	read := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	first, _ := read()
	return first, read
}

// sending reads a body that is let go of when it has been sent, since the agent may take long to answer.
type sending struct{ rest []byte }

// Read implements io.Reader.
func (s *sending) Read(p []byte) (int, error) {
	n := copy(p, s.rest)
	if s.rest = s.rest[n:]; len(s.rest) == 0 {
		s.rest = nil
		return n, io.EOF
	}
	return n, nil
}

// Close implements io.Closer. It leaves the body alone, since the transport may still be reading it.
func (s *sending) Close() error { return nil }
