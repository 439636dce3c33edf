// SPDX-License-Identifier: Apache-2.0

// Package gunzip reads answers compressed by gzip, although the gateway does not ask for it.
package gunzip

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
)

// Is reports whether a Content-Encoding is gzip.
func Is(encoding string) bool {
	return strings.EqualFold(encoding, "gzip") || strings.EqualFold(encoding, "x-gzip")
}

// NewReader returns a reader of the compressed content of r. It reads nothing before it is read. Its reader has to
// limit the amount: a megabyte may be gigabytes.
func NewReader(r io.Reader) io.Reader { return &reader{from: r} }

type reader struct {
	from io.Reader
	gzip *gzip.Reader
}

func (r *reader) Read(p []byte) (n int, err error) {
	if r.gzip == nil {
		if r.gzip, err = gzip.NewReader(r.from); err != nil {
			return 0, err
		}
	}
	return r.gzip.Read(p)
}

// Transport is a http.RoundTripper with uncompressed answers.
type Transport struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.Transport.RoundTrip(req)
	if err == nil && Is(res.Header.Get("Content-Encoding")) {
		res.Header.Del("Content-Encoding")
		res.Header.Del("Content-Length")
		res.ContentLength, res.Uncompressed = -1, true
		res.Body = body{NewReader(res.Body), res.Body}
	}
	return res, err
}

type body struct {
	io.Reader
	io.Closer
}
