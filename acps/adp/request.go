// SPDX-License-Identifier: Apache-2.0

package adp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aip-gateway/aip-gateway/identity"
)

// The bounds of a request.
const (
	MaxBody  = 64 << 10 // bytes
	MaxLimit = 50

	maxQuery     = 1000 // characters
	defaultLimit = 5
	maxForward   = 5 // of the limits of forwarding
)

// The types of queries (ADP v02.02 §4.2.1).
const (
	Explicit    = "explicit"    // what the query says
	Exploratory = "exploratory" // something like the query, or anything
	Trending    = "trending"    // what is called most
	Filtered    = "filtered"    // what the filter lets through
)

// Request is a query.
type Request struct {
	Type  string
	Query string
	Limit int
	Chain []string // the discovery servers that have forwarded it

	filter *filter // nil for none
}

// Error is an error of ADP (v02.02 §4.1.2). Its first three digits are the HTTP status.
type Error struct {
	Code   int
	Name   string
	Detail string
}

// Error implements error.
func (e *Error) Error() string { return e.Name + ": " + e.Detail }

// Status returns the HTTP status of the error.
func (e *Error) Status() int { return e.Code / 100 }

// The errors of ADP that are used. 40000 is none of the specification's, which has no code for what is no request.
var (
	badRequest   = kind{40000, "BadRequest"}
	missingQuery = kind{40001, "MissingQuery"}
	depthInvalid = kind{40002, "ForwardDepthLimitInvalid"}
	chainInvalid = kind{40003, "ForwardChainInvalid"}
	filterWrong  = kind{40004, "FilterInvalid"}
	fanoutWrong  = kind{40005, "ForwardFanoutLimitInvalid"}
	loopDetected = kind{50801, "ForwardLoopDetected"}
	chainForged  = kind{50803, "ForwardChainTampered"}
)

type kind struct {
	code int
	name string
}

func (k kind) errorf(format string, args ...any) *Error {
	return &Error{k.code, k.name, fmt.Sprintf(format, args...)}
}

// body is a request as it is sent. Members that are null count as missing, and unknown ones are ignored.
type body struct {
	Type   *string     `json:"type"`
	Query  *string     `json:"query"`
	Limit  *int        `json:"limit"`
	Filter *filterBody `json:"filter"`
	Depth  *int        `json:"forwardDepthLimit"`
	Fanout *int        `json:"forwardFanoutLimit"`
	Chain  []string    `json:"forwardChain"`
}

// Parse reads a request of v02.
func Parse(text []byte) (*Request, *Error) {
	var b body
	if err := decode(text, &b); err != nil {
		return nil, err
	}
	r := &Request{Type: Explicit, Limit: defaultLimit, Chain: b.Chain}
	if b.Type != nil {
		r.Type = *b.Type
	}
	if b.Query != nil {
		r.Query = strings.TrimSpace(*b.Query)
	}
	if b.Limit != nil {
		r.Limit = *b.Limit
	}
	switch {
	case !slices.Contains([]string{Explicit, Exploratory, Trending, Filtered}, r.Type):
		return nil, badRequest.errorf("type is %q, but must be explicit, exploratory, trending or filtered", clip(r.Type))
	case r.Limit < 1 || r.Limit > MaxLimit:
		return nil, badRequest.errorf("limit is %d, but must be from 1 to %d", r.Limit, MaxLimit)
	case utf8.RuneCountInString(r.Query) > maxQuery:
		return nil, badRequest.errorf("query has more than %d characters", maxQuery)
	case r.Type == Explicit && r.Query == "":
		return nil, missingQuery.errorf("type explicit needs a query")
	case b.Depth != nil && (*b.Depth < 1 || *b.Depth > maxForward):
		return nil, depthInvalid.errorf("forwardDepthLimit is %d, but must be from 1 to %d", *b.Depth, maxForward)
	case b.Fanout != nil && (*b.Fanout < 1 || *b.Fanout > maxForward):
		return nil, fanoutWrong.errorf("forwardFanoutLimit is %d, but must be from 1 to %d", *b.Fanout, maxForward)
	case r.Type == Filtered && b.Filter == nil:
		return nil, filterWrong.errorf("type filtered needs a filter")
	}
	for _, one := range b.Chain {
		if _, err := identity.ParseAIC(one); err != nil {
			return nil, chainInvalid.errorf("forwardChain: %q is no AIC", clip(one))
		}
	}
	if r.Type == Filtered {
		r.Query = ""
	}
	if b.Filter != nil {
		var err *Error
		if r.filter, err = compile(b.Filter); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// ParseV1 reads a request of v01.
func ParseV1(text []byte) (*Request, *Error) {
	var b struct {
		Query *string `json:"query"`
		Limit *int    `json:"limit"`
	}
	if err := decode(text, &b); err != nil {
		return nil, err
	}
	r := &Request{Type: Explicit, Limit: defaultLimit}
	if b.Query != nil {
		r.Query = strings.TrimSpace(*b.Query)
	}
	if b.Limit != nil {
		r.Limit = *b.Limit
	}
	switch n := utf8.RuneCountInString(r.Query); {
	case n < 1 || n > maxQuery:
		return nil, missingQuery.errorf("query needs 1 to %d characters", maxQuery)
	case r.Limit < 1 || r.Limit > 10:
		return nil, badRequest.errorf("limit is %d, but must be from 1 to 10", r.Limit)
	}
	return r, nil
}

// Check checks who has forwarded a request (v02.02 §4.1.2). own is the AIC of this discovery server, peer that of the
// caller; either may be empty.
func (r *Request) Check(own, peer string) *Error {
	if len(r.Chain) == 0 {
		return nil
	}
	is := func(a, b string) bool { return a != "" && identity.AIC(strings.ToUpper(a)).Is(b) }
	if slices.ContainsFunc(r.Chain, func(one string) bool { return is(own, one) }) {
		return loopDetected.errorf("this server is in forwardChain already")
	}
	if last := r.Chain[len(r.Chain)-1]; !is(peer, last) {
		return chainForged.errorf("the last server in forwardChain is not the one whose certificate has come with it")
	}
	return nil
}

func decode(text []byte, into any) *Error {
	if err := json.Unmarshal(text, into); err != nil {
		return badRequest.errorf("the body is no request: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// clip returns the beginning of what a caller has sent, for an error.
func clip(s string) string {
	if len(s) <= 100 {
		return s
	}
	return strings.ToValidUTF8(s[:100], "") + "…"
}
