// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"io"
	"net/http"

	"github.com/aip-gateway/aip-gateway/gateway"
)

// The paths below the mount point for Leaders on the reference implementation of AIP 2, to the ACS of a Partner and to
// its readiness for calls. A site may have handlers of its own there.
const (
	acsPath    = "acs"
	healthPath = "health"
)

// Offered returns the handler of a request; nil for none. Any other handler of the host may answer in its place.
func (f *Front) Offered(r *http.Request, summary *gateway.Summary) http.Handler {
	path, ok := f.under(r.URL)
	if !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil
	}
	switch path {
	case acsPath:
		summary.Command = "card"
		return documentHandler{f, f.gateway.ACS, path, f.url(r)}
	case healthPath:
		summary.Command = "health"
		return http.HandlerFunc(f.health)
	}
	return nil
}

// health says whether the Partner takes calls, and nothing else, since everyone may ask.
func (f *Front) health(w http.ResponseWriter, r *http.Request) {
	status, body := http.StatusOK, `{"status":"ok"}`+"\n"
	if f.config.Healthy != nil && !f.config.Healthy() {
		status, body = http.StatusServiceUnavailable, `{"status":"unavailable"}`+"\n"
	}
	header := w.Header()
	header["Content-Type"] = jsonType
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		_, _ = io.WriteString(w, body)
	}
}

// Mount returns the path of the mount point, as the caller of a request sees it.
func (f *Front) Mount(r *http.Request) string { return f.stripped(r) + f.gateway.Base() }

// stripped returns the part of a request's path cut off by the host, before the mount point.
func (f *Front) stripped(r *http.Request) string {
	if f.config.Stripped == nil {
		return ""
	}
	return f.config.Stripped(r)
}

// url returns the public URL of the mount point, as far as a request says it.
func (f *Front) url(r *http.Request) string {
	return f.gateway.URL(r.TLS != nil, r.Host, f.stripped(r))
}
