// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"fmt"
	"net/url"
	"strings"
)

// Traces says where the traces of tasks are shown.
type Traces struct {
	// The URL of a trace's page for the console and the commands, such as https://jaeger.example.com/trace/{trace_id}.
	// Default: none; the id alone.
	Link string `json:"link,omitempty"`
}

// traceMark stands in a link for the id of a trace.
const traceMark = "{trace_id}"

// validate checks the settings.
func (t *Traces) validate() error {
	if t.Link == "" {
		return nil
	}
	u, err := url.Parse(t.of("0"))
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("traces: link is %q, but must be an http or https URL", t.Link)
	case !strings.Contains(t.Link, traceMark):
		return fmt.Errorf("traces: link is %q, but must have %s where the id of the trace stands", t.Link, traceMark)
	}
	return nil
}

// of returns the link to a trace; empty where there is none.
func (t *Traces) of(id string) string {
	if id == "" {
		return ""
	}
	return strings.ReplaceAll(t.Link, traceMark, id)
}
