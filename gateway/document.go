// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
)

// Document makes what is shown to whoever asks: the Partner's cards. base is the public URL of the mount point, version
// the one that the caller names. A nil body says that there is no such document for it.
type Document func(ctx context.Context, base, version string) (body []byte, err error)

// documentAge is how long a document may be taken for what it was, in seconds.
const documentAge = "60"

// document answers a request for the document at a path under the mount point, if there is one there.
func (h *Handler) document(w http.ResponseWriter, r *http.Request, path string) bool {
	document := h.Documents[path]
	if document == nil {
		return false
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "get this", http.StatusMethodNotAllowed)
		return true
	}
	version := strings.TrimSpace(r.Header.Get("A2A-Version"))
	if version == "" {
		version = r.URL.Query().Get("A2A-Version")
	}
	body, err := document(r.Context(), h.public(r), version)
	switch {
	case err != nil:
		h.Log.Warn("a card cannot be shown", "document", path, "error", err)
		http.Error(w, "the agent shows no card now", http.StatusBadGateway)
		return true
	case body == nil:
		http.NotFound(w, r)
		return true
	}
	sum := sha256.Sum256(body)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	header := w.Header()
	header.Set("ETag", tag)
	header.Add("Vary", "A2A-Version")
	header.Set("Cache-Control", "max-age="+documentAge)
	if matches(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return true
	}
	header["Content-Type"] = jsonType
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body)
	}
	return true
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

// public returns the public URL of the mount point: as it is configured, or as the caller wrote it.
func (h *Handler) public(r *http.Request) string {
	if h.PublicURL != "" {
		return h.PublicURL
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host + h.Base
}
