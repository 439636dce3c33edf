// SPDX-License-Identifier: Apache-2.0

package adp

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/aip-gateway/aip-gateway/acps/catalog"
	"github.com/aip-gateway/aip-gateway/translate/aip/acs"
)

// The weights of BM25.
const (
	saturation  = 1.2  // how soon the same word again counts no more
	lengthShare = 0.75 // how much the length of a document counts
)

// index is what is searched, made of the entries of a catalogue. It is not changed.
type index struct {
	agents   []*agent // by AIC
	skills   []document
	postings map[string][]posting
	length   float64 // of a document, on average
}

// agent is an agent with an ACS.
type agent struct {
	entry  *catalog.Entry
	aic    string
	number int            // its place in agents
	fields map[string]any // of its ACS, for filters
	first  int            // its first skill in skills; it has one at least, which may be empty
}

// document is a skill of an agent.
type document struct {
	agent  *agent
	skill  acs.Skill
	length float64 // in words
}

// posting says how often a word is in a document.
type posting struct {
	document int
	times    float64
}

// newIndex makes an index. Entries without an ACS, or whose ACS is none, are left out.
func newIndex(entries []*catalog.Entry) *index {
	x := &index{postings: make(map[string][]posting)}
	for _, e := range entries {
		if e.AIC == "" || e.ACS == nil {
			continue
		}
		a := &agent{entry: e, aic: e.AIC}
		if json.Unmarshal(e.ACS, &a.fields) == nil {
			x.agents = append(x.agents, a)
		}
	}
	slices.SortFunc(x.agents, func(a, b *agent) int { return strings.Compare(a.aic, b.aic) })
	for i, a := range x.agents {
		a.number = i
		x.add(a)
	}
	if len(x.skills) > 0 {
		x.length /= float64(len(x.skills))
	}
	return x
}

// add adds the skills of an agent.
func (x *index) add(a *agent) {
	var doc acs.Document
	if err := json.Unmarshal(a.entry.ACS, &doc); err != nil {
		return
	}
	a.first = len(x.skills)
	skills := doc.Skills
	if len(skills) == 0 {
		skills = []acs.Skill{{}}
	}
	for _, s := range skills {
		counts := make(map[string]float64)
		length := 0.0
		add := func(weight float64, texts ...string) {
			for _, t := range texts {
				for _, word := range words(t) {
					counts[word] += weight
					length += weight
				}
			}
		}
		add(2, append([]string{s.Name, s.ID}, s.Tags...)...)
		add(1, append([]string{s.Description, doc.Name, doc.Description}, s.Examples...)...)
		for word, n := range counts {
			x.postings[word] = append(x.postings[word], posting{len(x.skills), n})
		}
		x.skills = append(x.skills, document{a, s, length})
		x.length += length
	}
}

// hit is a skill that was found.
type hit struct {
	document int
	score    float64
}

// search returns the skills in which there is a word of a query, the best first.
func (x *index) search(query string) []hit {
	scores := make([]float64, len(x.skills))
	var hits []hit
	asked := words(query)
	slices.Sort(asked)
	for _, word := range slices.Compact(asked) {
		found := x.postings[word]
		n := float64(len(found))
		rare := math.Log(1 + (float64(len(x.skills))-n+0.5)/(n+0.5)) // above 0
		for _, p := range found {
			if scores[p.document] == 0 {
				hits = append(hits, hit{document: p.document})
			}
			norm := 1 - lengthShare + lengthShare*x.skills[p.document].length/x.length
			scores[p.document] += rare * p.times * (saturation + 1) / (p.times + saturation*norm)
		}
	}
	for i := range hits {
		hits[i].score = scores[hits[i].document]
	}
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.document, b.document))
	})
	return hits
}

// words returns the words of a text, in lower case; of scripts without spaces, each two neighbours.
func words(s string) (all []string) {
	var word []rune
	var last rune // of a script without spaces
	flush := func() {
		if len(word) > 0 {
			all = append(all, string(word))
			word = word[:0]
		}
	}
	for _, r := range strings.ToLower(s) {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			flush()
			if last != 0 {
				all = append(all, string([]rune{last, r}))
			}
			last = r
			continue
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r):
			word = append(word, r)
		default:
			flush()
		}
		last = 0
	}
	flush()
	return all
}
