// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
)

// answer is the answer of a decision point with a decision.
type answer struct {
	allowed bool
	reason  string
}

// err returns the error for a denied call.
func (a answer) err() error {
	if a.allowed {
		return nil
	}
	return &Denied{Reason: a.reason}
}

// read reads the answer of the data API. Its result is a boolean, or an object with a boolean allow (as policies mostly
// have it) or allowed (AAC v02.02 §6.6), and a reason. An error means no decision.
func read(body []byte) (a answer, err error) {
	document, bad := jsonrpc.ParseValue(body, jsonrpc.Limits{Bytes: maxAnswer})
	if bad != nil {
		return a, errors.New("its answer is no JSON")
	}
	result := document.Get("result")
	switch {
	case !result.Exists():
		return a, errors.New("the document is undefined")
	case result.IsBool():
		return answer{allowed: result.Bool()}, nil
	case !result.IsObject():
		return a, errors.New("the result is neither a boolean nor an object")
	}
	decided := false
	a.allowed = true
	for _, name := range []string{"allow", "allowed"} {
		switch v := result.Get(name); {
		case !v.Exists():
		case !v.IsBool():
			return answer{}, errors.New("the result has a member " + name + " that is no boolean")
		default:
			decided = true
			a.allowed = a.allowed && v.Bool()
		}
	}
	if !decided {
		return answer{}, errors.New("the result has no member allow")
	}
	for _, name := range []string{"reason", "reasonCode"} {
		if v := result.Get(name); v.Type == gjson.String {
			a.reason = printable(v.Str)
		}
	}
	if a.allowed && !jsonrpc.IsEmpty(result.Get("obligations")) {
		return answer{reason: "it allows the call with obligations, and this gateway knows none"}, nil
	}
	return a, nil
}

// printable returns the beginning of a text, without unprintable characters: they have no place in a log line.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return -1
		}
		return r
	}, strings.Clone(s))
	if len(s) > maxReason {
		s = strings.ToValidUTF8(s[:maxReason], "")
	}
	return s
}

// maxFreshness bounds the time from Cache-Control.
const maxFreshness = 24 * time.Hour

// freshness returns the time for which an answer may be used, by its Cache-Control alone (RFC 9111 §5.2.2): without
// max-age, none.
func freshness(h http.Header) time.Duration {
	fresh := time.Duration(-1)
	for field := range strings.SplitSeq(strings.Join(h.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "no-store", "no-cache":
			return 0
		case "max-age":
			age := seconds(strings.Trim(strings.TrimSpace(value), `"`))
			if fresh < 0 || age < fresh { // of two, the shorter one
				fresh = age
			}
		}
	}
	if fresh <= 0 {
		return 0
	}
	if age := h.Get("Age"); age != "" {
		fresh -= seconds(age)
	}
	return max(0, fresh)
}

// seconds reads a number of seconds; 0 for anything else.
func seconds(s string) time.Duration {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return time.Duration(min(n, uint64(maxFreshness/time.Second))) * time.Second
}
