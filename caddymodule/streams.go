// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"net/http"
	"reflect"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// writer names a type of http.ResponseWriter.
type writer struct{ pkg, name string }

const caddyHTTP = "github.com/caddyserver/caddy/v2/modules/caddyhttp"

// passing are the writers that pass on unchanged what they are given: the one of net/http, and those by which Caddy
// counts bytes, sets deadlines and changes headers. Their types are not exported. A new one of Caddy's, or one of
// another module, is not known here, so its streams are not taken over, and its connections are not looped.
var passing = map[writer]bool{
	{"net/http", "response"}:                          true,
	{caddyHTTP, "responseRecorder"}:                   true,
	{caddyHTTP, "ResponseWriterWrapper"}:              true,
	{caddyHTTP, "IdleTimeoutWriter"}:                  true,
	{caddyHTTP, "readDeadlineWriter"}:                 true,
	{caddyHTTP + "/headers", "responseWriterWrapper"}: true,
}

// passes reports whether a writer passes on unchanged what it is given.
func passes(w http.ResponseWriter) bool {
	t := reflect.TypeOf(w)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if recorder, ok := w.(caddyhttp.ResponseRecorder); ok && recorder.Buffered() {
		return false
	}
	return passing[writer{t.PkgPath(), t.Name()}]
}
