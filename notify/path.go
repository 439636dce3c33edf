// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"net/url"
	"strings"
)

// A webhook's URL is a secret, but for its endpoint: many receivers know their callers by the path alone. Yet an
// operator must tell the URLs of one endpoint apart.

const (
	maxShownSegments = 4 // of a path
	maxShownWhole    = 3 // letters of a segment with none shown
)

// maskedPath returns the path of a URL as an operator sees it: of each segment its first and its last letter.
func maskedPath(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	segments := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	for i, s := range segments {
		segments[i] = maskedSegment(s)
	}
	if n := len(segments); n > maxShownSegments {
		segments = append(append(segments[:2:2], "…"), segments[n-2:]...)
	}
	path := "/" + strings.Join(segments, "/")
	if u.RawQuery != "" {
		path += "?…"
	}
	return path
}

func maskedSegment(s string) string {
	letters := []rune(s)
	switch n := len(letters); {
	case n == 0:
		return ""
	case n <= maxShownWhole:
		return "…"
	default:
		return string(letters[0]) + "…" + string(letters[n-1])
	}
}

// secretPart returns the part of a URL behind its endpoint; empty if there is none.
func secretPart(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.RequestURI() == "/" {
		return ""
	}
	return u.RequestURI()
}

// splitURL returns the endpoint of a URL written by an operator, and its path, empty for any: as the gateway shows it,
// or masked from the webhook's own.
func splitURL(s string) (endpoint string, paths []string, err error) {
	origin, path := s, ""
	if _, rest, ok := strings.Cut(s, "://"); ok {
		if i := strings.IndexAny(rest, "/?"); i >= 0 {
			origin, path = s[:len(s)-len(rest)+i], rest[i:]
		}
	}
	if endpoint, err = ParseEndpoint(origin); err != nil || path == "" || path == "/" {
		return endpoint, nil, err
	}
	return endpoint, []string{path, maskedPath(s)}, nil
}
