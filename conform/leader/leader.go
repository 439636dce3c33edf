// SPDX-License-Identifier: Apache-2.0

// Package leader is a Partner of AIP that misbehaves, to test Leaders. Each Fault has a path of its own, and a Partner
// behind it with tasks of its own: /lost-answer/rpc, /lost-answer/stream. Under /right is one without a fault.
//
//	Server ──▶ record ──▶ Fault ──▶ partner.Partner
package leader

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/aip-gateway/aip-gateway/conform/internal/partner"
)

// AIC is that of the Partner.
const AIC = "10001000011K912345E789ABCDEF2353"

const maxBody = 8 << 20

// Server is the Partner. The owner must close it.
type Server struct {
	faults  []Fault
	records map[string]*record
	serving map[string]http.Handler
	closing []*partner.Partner
}

// New returns a Server.
func New() *Server {
	right := Fault{Name: "right", Does: "nothing is wrong", Wants: "it gets the products"}
	s := &Server{faults: append([]Fault{right}, faults...), records: make(map[string]*record),
		serving: make(map[string]http.Handler)}
	for _, f := range s.faults {
		p := partner.New(AIC)
		if f.change != nil {
			f.change(p)
		}
		r := newRecord(f)
		r.watch(p)
		var handler http.Handler = p
		if f.wrap != nil {
			handler = f.wrap(p)
		}
		s.records[f.Name], s.serving[f.Name] = r, handler
		s.closing = append(s.closing, p)
	}
	return s
}

// Close ends all work.
func (s *Server) Close() {
	for _, p := range s.closing {
		p.Close()
	}
}

// ServeHTTP implements http.Handler. GET / lists the Faults, and GET /report has what the Leader sent.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case r.Method == http.MethodGet && name == "":
		for _, f := range s.faults {
			fmt.Fprintf(w, "/%s/rpc  %s; %s\n", f.Name, f.Does, f.Wants)
		}
		return
	case r.Method == http.MethodGet && name == "report":
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(s.Reports())
		return
	case s.serving[name] == nil:
		http.NotFound(w, r)
		return
	}
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
		if err != nil || len(body) > maxBody {
			http.Error(w, fmt.Sprintf("the body must be complete, and have at most %d bytes", maxBody),
				http.StatusRequestEntityTooLarge)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.records[name].request(body)
	}
	s.serving[name].ServeHTTP(w, r)
}

// Reports returns what the Leader sent under each Fault.
func (s *Server) Reports() []Report {
	all := make([]Report, len(s.faults))
	for i, f := range s.faults {
		all[i] = s.records[f.Name].report()
	}
	return all
}
