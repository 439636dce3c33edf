// SPDX-License-Identifier: Apache-2.0

package httptransport

import (
	"errors"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// fields are the header fields of requests for a media type. They are never changed.
type fields struct {
	header http.Header
	text   []byte // as they are sent, with Host
}

// fields returns the header fields of requests for a media type.
func (t *Transport) fields(accept string) fields {
	h := http.Header{"User-Agent": {"aip-gateway"}}
	for name, values := range t.config.Header {
		if name = http.CanonicalHeaderKey(name); !slices.Contains(ownFields, name) {
			h[name] = values
		}
	}
	for _, f := range t.config.Codec.Header() {
		h.Set(f.Name, f.Value)
	}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", accept)
	return fields{h, appendFields(nil, t.host, h)}
}

// ownFields are the fields set by the transport itself, and the fields that would change the framing of a request.
var ownFields = []string{"Host", "Content-Length", "Transfer-Encoding", "Trailer"}

// appendRequestLine appends the first line of a request.
func appendRequestLine(dst []byte, method, uri string) []byte {
	dst = append(dst, method...)
	dst = append(dst, ' ')
	dst = append(dst, uri...)
	return append(dst, " HTTP/1.1\r\n"...)
}

// appendFields appends the fields of a header in the order of their names, after the host.
func appendFields(dst []byte, host string, header http.Header) []byte {
	dst = append(append(append(dst, "Host: "...), host...), "\r\n"...)
	names := make([]string, 0, len(header))
	for name := range header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range header[name] {
			dst = append(append(dst, name...), ": "...)
			dst = append(append(dst, textproto.TrimString(value)...), "\r\n"...)
		}
	}
	return dst
}

// appendLength appends the length of the body, and ends the head.
func appendLength(dst []byte, method string, length int) []byte {
	if length > 0 || method == http.MethodPost {
		dst = append(dst, "Content-Length: "...)
		dst = append(strconv.AppendInt(dst, int64(length), 10), "\r\n"...)
	}
	return append(dst, "\r\n"...)
}

// requestURI returns the text of the request line for a URL. Characters that would end it are escaped.
func requestURI(u *url.URL) string {
	const hex = "0123456789ABCDEF"
	s := u.RequestURI()
	if strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) < 0 {
		return s
	}
	var clean strings.Builder
	for _, b := range []byte(s) {
		if b <= ' ' || b == 0x7f {
			clean.Write([]byte{'%', hex[b>>4], hex[b&15]})
		} else {
			clean.WriteByte(b)
		}
	}
	return clean.String()
}

// hostField returns the Host field of a host: in ASCII, and without the zone of an IPv6 address. A zone has a meaning
// on this machine only.
func hostField(host string) (string, error) {
	host, err := httpguts.PunycodeHostPort(host)
	if err == nil && !httpguts.ValidHostHeader(host) {
		err = errors.New("it has a character that HTTP does not allow")
	}
	if i := strings.IndexByte(host, '%'); strings.HasPrefix(host, "[") && i >= 0 {
		if j := strings.LastIndexByte(host, ']'); j > i {
			host = host[:i] + host[j:]
		}
	}
	return host, err
}
