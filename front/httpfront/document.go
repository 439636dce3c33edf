// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/aip-gateway/aip-gateway/gateway"
)

// documentAge is the time for which a document may be cached, in seconds.
const documentAge = "60"

// documentHandler answers requests for a document.
type documentHandler struct {
	front    *Front
	document gateway.Document
	path     string
	base     string // the public URL of the mount point
}

// ServeHTTP answers a request.
func (d documentHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "use GET", http.StatusMethodNotAllowed)
		return
	}
	version := strings.TrimSpace(r.Header.Get("A2A-Version"))
	if version == "" {
		version = r.URL.Query().Get("A2A-Version")
	}
	body, err := d.document(r.Context(), d.base, version)
	switch {
	case err != nil && r.Context().Err() != nil:
		return // the caller has left
	case err != nil:
		// What to do: set `signatures` to drop or keep.
		d.front.config.Log.Warn("a card cannot be served", "document", d.path, "error", err)
		http.Error(w, "the agent's card is not available", http.StatusBadGateway)
		return
	case body == nil:
		http.NotFound(w, r)
		return
	}
	sum := sha256.Sum256(body)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	header := w.Header()
	header.Set("ETag", tag)
	header.Add("Vary", "A2A-Version")
	header.Set("Cache-Control", "max-age="+documentAge)
	if matches(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header["Content-Type"] = jsonType
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body)
	}
}

// matches reports whether an If-None-Match field names a tag.
func matches(field, tag string) bool {
	for one := range strings.SplitSeq(field, ",") {
		if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == tag || one == "*" {
			return true
		}
	}
	return false
}
