// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"fmt"
	"net/http"
	"reflect"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
)

// Streams is how open streams use the memory of the process.
type Streams struct {
	// Whether a stream over HTTP/1.1 leaves its request when it rests: on or off. Then it takes the connection over from
	// Caddy, and needs a third of the memory or less. Default: on.
	TakeOver string `json:"take_over,omitempty"`

	// Whether the process gives memory back to the system, in a pause, after a burst of streams or of other work has
	// ended: on or off. Default: on.
	ReleaseMemory string `json:"release_memory,omitempty"`
}

// The values of switches.
const (
	switchOn  = "on"
	switchOff = "off"
)

func (s *Streams) provision() {
	conf.OrDefault(&s.TakeOver, switchOn)
	conf.OrDefault(&s.ReleaseMemory, switchOn)
}

func (s *Streams) validate() error {
	for name, value := range map[string]string{"take_over": s.TakeOver, "release_memory": s.ReleaseMemory} {
		if value != switchOn && value != switchOff {
			return fmt.Errorf("streams: %s is %q, but must be on or off", name, value)
		}
	}
	return nil
}

// writer names a type of http.ResponseWriter.
type writer struct{ pkg, name string }

const (
	caddyHTTP = "github.com/caddyserver/caddy/v2/modules/caddyhttp"
	takeOver  = "github.com/aip-gateway/aip-gateway/gateway/httpfront/takeover"
)

// passing are the writers that pass on unchanged what they are given: those of net/http and of loops, and those by
// which Caddy counts bytes, sets deadlines and changes headers. Their types are not exported. A new one of Caddy's, or
// one of another module, is not known here, so its streams are not taken over, and its connections are not looped.
var passing = map[writer]bool{
	{"net/http", "response"}:                          true,
	{takeOver, "response"}:                            true,
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
