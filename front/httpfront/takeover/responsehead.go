// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// writeHead writes the head of the response, as chunkWriter.writeHeader of net/http does. p is the first piece of the
// body.
func (w *response) writeHead(header http.Header, p []byte) {
	w.began = true
	var dropped map[string]bool
	drop := func(name string) {
		if _, ok := header[name]; ok {
			if dropped == nil {
				dropped = make(map[string]bool)
			}
			dropped[name] = true
		}
	}
	trailers := len(header["Trailer"]) > 0
	for name := range header {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			trailers = true
			drop(name)
		}
	}
	for _, names := range header["Trailer"] {
		w.declare(names)
	}
	var length, kind, connection, encoding string
	coding := header.Get("Transfer-Encoding")
	_, says := header["Content-Length"]
	if w.done && !trailers && coding == "" && hasBody(w.status) && !says {
		w.length = int64(len(p))
		length = strconv.Itoa(len(p))
	}
	known := w.length >= 0
	ending := w.loop.loops.ended.Load()
	w.closes = w.closes || ending || header.Get("Connection") == "close"
	switch _, says := header["Content-Type"]; {
	case !hasBody(w.status):
		drop("Content-Length")
		drop("Transfer-Encoding")
		if w.status == http.StatusNotModified {
			drop("Content-Type")
		}
	case !says && header.Get("Content-Encoding") == "" && coding == "" && len(p) > 0:
		kind = http.DetectContentType(p)
	}
	if known && coding != "" && coding != "identity" {
		w.loop.logf("http: WriteHeader called with both Transfer-Encoding of %q and a Content-Length of %d",
			coding, w.length)
		drop("Content-Length")
		known = false
	}
	switch {
	case !hasBody(w.status) || known:
		drop("Transfer-Encoding")
	case coding == "identity":
		w.closes = true
		drop("Transfer-Encoding")
	default:
		w.chunked, encoding = true, "chunked"
		drop("Content-Length")
		if coding == "chunked" {
			drop("Transfer-Encoding")
		}
	}
	says = httpguts.HeaderValuesContainsToken(header["Connection"][:min(1, len(header["Connection"]))], "close")
	if w.closes && (ending || !says) && w.status != http.StatusSwitchingProtocols {
		drop("Connection")
		connection = "close"
	}
	w.statusLine(w.status)
	_ = header.WriteSubset(w.buffer(), dropped)
	if _, says := header["Date"]; !says {
		w.add("Date: ")
		*w.out = time.Now().UTC().AppendFormat(*w.out, http.TimeFormat)
		w.add("\r\n")
	}
	w.field("Content-Length", length)
	w.field("Content-Type", kind)
	w.field("Connection", connection)
	w.field("Transfer-Encoding", encoding)
	w.add("\r\n")
}

// statusLine writes the line of a status.
func (w *response) statusLine(status int) {
	text := http.StatusText(status)
	if text == "" {
		text = "status code " + strconv.Itoa(status)
	}
	w.add("HTTP/1.1 ")
	*w.out = strconv.AppendInt(*w.out, int64(status), 10)
	w.add(" ")
	w.add(text)
	w.add("\r\n")
}

// field writes a field of the header, if it has a value.
func (w *response) field(name, value string) {
	if value != "" {
		w.add(name)
		w.add(": ")
		w.add(value)
		w.add("\r\n")
	}
}

func (w *response) add(s string) { *w.out = append(*w.out, s...) }

// buffer appends to the unsent bytes.
func (w *response) buffer() buffer { return buffer{w.out} }

// buffer appends to a slice.
type buffer struct{ to *[]byte }

// Write implements io.Writer.
func (b buffer) Write(p []byte) (int, error) {
	*b.to = append(*b.to, p...)
	return len(p), nil
}

// WriteString implements io.StringWriter.
func (b buffer) WriteString(s string) (int, error) {
	*b.to = append(*b.to, s...)
	return len(s), nil
}
