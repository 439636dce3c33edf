// SPDX-License-Identifier: Apache-2.0

package agentca

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/retryafter"
)

// Problem is an answer of the authority that refuses a request (RFC 7807). Its types are those of ACME, or of ACPs.
type Problem struct {
	Status int           // of HTTP
	Kind   string        // the last part of the type, in lower case and without underscores, such as badnonce
	Detail string        // a sentence of the authority, cut
	Wait   time.Duration // for which it asks not to be asked again; 0 for none
}

// The kinds that matter here: the types of RFC 8555 §6.7, and those of ACPs v2.1, are the same in this form.
const (
	badNonce        = "badnonce"
	badSignature    = "badsignature"
	noBinding       = "externalaccountrequired"
	accountMissing  = "accountdoesnotexist"
	accountNotFound = "accountnotfound"
	orderNotReady   = "ordernotready"
	alreadyRevoked  = "alreadyrevoked"
	invalidID       = "invalididentifier" // the agent is inactive, or its ACS lacks the organization
	maxDetail       = 300
	maxProblemWait  = time.Hour
)

// Error implements error.
func (p *Problem) Error() string {
	return fmt.Sprintf("the authority has answered %d %s: %s", p.Status, p.Kind, p.Detail)
}

// isKind reports whether an error is a Problem of one of the kinds.
func isKind(err error, kinds ...string) bool {
	p, ok := errors.AsType[*Problem](err)
	return ok && slices.Contains(kinds, p.Kind)
}

// isFinal reports whether the authority would answer the same request in the same way again.
func isFinal(err error) bool {
	p, ok := errors.AsType[*Problem](err)
	return ok && p.Status >= 400 && p.Status < 500 && p.Status != http.StatusTooManyRequests && p.Kind != badNonce
}

// readProblem reads an answer that refuses. An answer that is no problem document, such as that of a proxy, is one of
// the kind "other".
func readProblem(status int, header http.Header, body []byte) *Problem {
	var doc struct {
		Type, Detail, Title string
	}
	p := &Problem{Status: status, Kind: "other", Detail: http.StatusText(status),
		Wait: retryafter.Read(header.Get("Retry-After"), time.Now(), maxProblemWait)}
	if json.Unmarshal(body, &doc) != nil || doc.Type == "" {
		return p
	}
	kind := strings.NewReplacer("_", "", "-", "").Replace(doc.Type[strings.LastIndexByte(doc.Type, ':')+1:])
	p.Kind, p.Detail = cmp.Or(cut(strings.ToLower(kind), 60), p.Kind), cut(doc.Detail, maxDetail)
	if p.Detail == "" {
		p.Detail = cut(doc.Title, maxDetail)
	}
	return p
}

// cut returns the beginning of a text, in one line.
func cut(s string, most int) string {
	s = strings.ToValidUTF8(s, "?")
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
