// SPDX-License-Identifier: Apache-2.0

// Package console is the gateway's web page for its operator: HTML, CSS and JavaScript that are embedded as they are
// written, over the routes of the admin API. It knows neither Caddy nor tasks.
package console

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// Path is where the page is, below which its files are.
const Path = "/aip/console/"

// permissions is the file that says what the page may change: a JSON list.
const permissions = "permissions.json"

// ParsePermissions returns the permissions with the names of an allow.
func ParsePermissions(names []string) (all []adminapi.Permission, err error) {
	for _, name := range names {
		if !slices.Contains(adminapi.Permissions(), adminapi.Permission(name)) {
			return nil, fmt.Errorf("allow has %q, but must have some of %s", name, adminapi.Permissions())
		}
		all = append(all, adminapi.Permission(name))
	}
	return all, nil
}

// needed returns the permission that the page needs for a route of the admin API; empty where it does not use the path.
func needed(path string) adminapi.Permission {
	if route := adminapi.RouteOf(path); route != nil {
		return route.Console
	}
	return ""
}

// Handler serves the page and the routes of the admin API that the page uses. It identifies no one: its host must admit
// operators only.
type Handler struct {
	// API answers the routes of the admin API.
	API http.Handler

	// Allow is what may be changed. Default: nothing; the page only reads.
	Allow []adminapi.Permission
}

// Serves reports whether a path is one of the page, or one that it uses.
func (*Handler) Serves(path string) bool {
	return needed(path) != "" || path+"/" == Path || strings.HasPrefix(path, Path)
}

// policy is the Content-Security-Policy of the page: it runs its own files, and connects to its own server only. Text
// can become neither a script nor, by Trusted Types, HTML.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// ServeHTTP answers a request for a path that Serves.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	if permission := needed(r.URL.Path); permission != "" {
		h.serveAPI(w, r, permission)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		adminapi.Refuse(w, http.StatusMethodNotAllowed, "use GET")
		return
	}
	switch name := strings.TrimPrefix(r.URL.Path, Path); {
	case r.URL.Path+"/" == Path: // relative, since a prefix of the path may have been stripped
		header.Set("Location", path.Base(Path)+"/")
		w.WriteHeader(http.StatusPermanentRedirect)
	case name == permissions:
		header.Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(append([]adminapi.Permission{}, h.Allow...)) // the client may have left
	case name == "":
		header.Set("Link", preload)
		http.ServeFileFS(w, r, assets, "assets/index.html")
	case isAsset(name):
		http.ServeFileFS(w, r, assets, "assets/"+name)
	default:
		adminapi.Refuse(w, http.StatusNotFound, "the console has no such file")
	}
}

// serveAPI has the admin API answer. A page of another site can neither read nor change anything by the browser of an
// operator, whatever the operator has logged in by.
func (h *Handler) serveAPI(w http.ResponseWriter, r *http.Request, needed adminapi.Permission) {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		adminapi.Refuse(w, http.StatusForbidden, "the request comes from another site")
		return
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		adminapi.Refuse(w, http.StatusForbidden, "the request comes from another site")
		return
	}
	if needed != adminapi.MayRead && !slices.Contains(h.Allow, needed) {
		adminapi.Refuse(w, http.StatusForbidden, fmt.Sprintf("the console may not do that; its site has no allow %s", needed))
		return
	}
	h.API.ServeHTTP(w, r)
}

//go:embed assets
var assets embed.FS

// preload is the header field by which a browser loads all modules of the page at once, and not one after another as it
// finds them.
var preload = func() string {
	var links []string
	modules, _ := fs.Glob(assets, "assets/*.js") // the pattern is good
	for _, module := range modules {
		links = append(links, "<"+path.Base(module)+">; rel=modulepreload")
	}
	return strings.Join(links, ", ")
}()

func isAsset(name string) bool {
	info, err := fs.Stat(assets, "assets/"+name)
	return err == nil && !info.IsDir()
}
