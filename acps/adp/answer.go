// SPDX-License-Identifier: Apache-2.0

package adp

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/acps/catalog"
)

// Server answers queries about the agents of a catalogue. It may be used by any number of goroutines at once.
type Server struct {
	catalog *catalog.Catalog
	about   About

	mu      sync.Mutex
	entries []*catalog.Entry // of which index was made
	index   *index
}

// About is what a Server asks about agents.
type About struct {
	// Alive reports whether an agent can be called, and when it has last answered; zero if that is not known. It is asked
	// once for each agent of an answer.
	Alive func(*catalog.Entry) (alive bool, answered time.Time)
	// Calls returns how many calls there were to an agent. It is asked for all agents, and must be fast.
	Calls func(*catalog.Entry) uint64
}

// NewServer returns a Server.
func NewServer(c *catalog.Catalog, about About) *Server { return &Server{catalog: c, about: about} }

// Found is what was found by a query.
type Found struct {
	query  *Request
	skills []document
	alive  map[string]liveness
}

// Empty reports whether nothing was found.
func (f *Found) Empty() bool { return len(f.skills) == 0 }

// Find answers a query. mayCall reports whether the caller may call an agent: others are not found. It is asked in the
// order of the answer, and no more often than is needed.
func (s *Server) Find(ctx context.Context, r *Request, mayCall func(*catalog.Entry) bool) *Found {
	x := s.current(ctx)
	f := &Found{query: r, alive: make(map[string]liveness)}
	judged := make([]verdict, len(x.agents))
	for _, hit := range x.ranked(r, s.about.Calls) {
		d := x.skills[hit.document]
		v := &judged[d.agent.number]
		if *v == open {
			*v = no
			if r.filter.matches(d.agent.fields) && mayCall(d.agent.entry) {
				*v = yes
			}
		}
		if *v == no {
			continue
		}
		if f.skills = append(f.skills, d); len(f.skills) == r.Limit {
			break
		}
	}
	for _, d := range f.skills {
		if _, asked := f.alive[d.agent.aic]; asked { // for another of its skills
			continue
		}
		alive, answered := s.about.Alive(d.agent.entry)
		one := liveness{Alive: alive}
		if !answered.IsZero() {
			one.Seen = new(answered.UTC().Format(time.RFC3339))
		}
		f.alive[d.agent.aic] = one
	}
	return f
}

// verdict says whether an agent may be in an answer.
type verdict int8

const (
	open verdict = iota
	yes
	no
)

// current returns the index of the catalogue as it is now. The catalogue is asked under s.mu, so that no index of an
// older state follows that of a newer one.
func (s *Server) current(ctx context.Context) *index {
	s.catalog.Entries(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.catalog.Known(); s.index == nil || !catalog.Same(known, s.entries) {
		s.entries, s.index = known, newIndex(known)
	}
	return s.index
}

// ranked returns the skills that a query is about, the best first. Without words, it is the first skill of each agent:
// what is called most comes first, for trending and exploratory queries.
func (x *index) ranked(r *Request, calls func(*catalog.Entry) uint64) []hit {
	if r.Query != "" {
		hits := x.search(r.Query)
		if r.Type == Explicit || r.Type == Exploratory && len(hits) > 0 {
			return hits
		}
	}
	hits := make([]hit, len(x.agents))
	for i, a := range x.agents {
		hits[i].document = a.first
		if r.Type != Filtered {
			hits[i].score = float64(calls(a.entry))
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	return hits
}

// liveness is an entry of aliveMap.
type liveness struct {
	Alive bool    `json:"alive"`
	Seen  *string `json:"aliveLastSeenAt"`
}

// skillFound is a skill in an answer.
type skillFound struct {
	AIC     string `json:"aic"`
	SkillID string `json:"skillId"`
	Ranking int    `json:"ranking"`
}

type group struct {
	Group  string       `json:"group"`
	Skills []skillFound `json:"agentSkills"`
}

type result struct {
	ACSMap map[string]json.RawMessage `json:"acsMap"`
	Agents []group                    `json:"agents"`
	Alive  map[string]liveness        `json:"aliveMap"`
}

// Encode returns the answer of v02. There is always one group.
func (f *Found) Encode() []byte {
	g := group{Group: cmp.Or(f.query.Query, f.query.Type), Skills: []skillFound{}}
	acsMap := make(map[string]json.RawMessage)
	for i, d := range f.skills {
		acsMap[d.agent.aic] = d.agent.entry.ACS
		g.Skills = append(g.Skills, skillFound{d.agent.aic, d.skill.ID, i + 1})
	}
	return encode(map[string]result{"result": {acsMap, []group{g}, f.alive}})
}

// EncodeV1 returns the answer of v01.
func (f *Found) EncodeV1() []byte {
	type one struct {
		ACS         json.RawMessage `json:"acs"`
		Description string          `json:"skill_description"`
		SkillID     string          `json:"skill_id"`
		Ranking     int             `json:"ranking"`
		Memo        string          `json:"memo"`
	}
	list := []one{}
	for i, d := range f.skills {
		list = append(list, one{d.agent.entry.ACS, d.skill.Description, d.skill.ID, i + 1, ""})
	}
	return encode(struct {
		Query  string `json:"query"`
		Agents []one  `json:"agents"`
	}{f.query.Query, list})
}

// Encode returns the answer with the error.
func (e *Error) Encode() []byte {
	type body struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    string `json:"data,omitempty"`
	}
	return encode(map[string]body{"error": {e.Code, e.Name, e.Detail}})
}

// Redirected returns the error with which a caller is sent to another server: because this one ends, or because it
// knows no agent for the query.
func Redirected(ends bool) *Error {
	if ends {
		return &Error{30701, "CapacityRedirect", "this server ends"}
	}
	return &Error{30702, "RegionRedirect", "no agent of this server is found by the query"}
}

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // an ACS is JSON, and the rest is of this package
	}
	return text
}
