// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/aip-gateway/aip-gateway/internal/retryafter"
)

// Kind is a kind of failure. The caller's next step depends on it.
type Kind int

// The kinds.
const (
	// Unavailable: the registry cannot be reached, or cannot answer now. The effect of a request with a body is unknown.
	Unavailable Kind = iota
	// Limited: too many requests. RetryAfter is the wait, if the registry names it.
	Limited
	// Unauthorized: there is no valid session.
	Unauthorized
	// Forbidden: another user has it, or the role of this one does not suffice.
	Forbidden
	// Inactive: the agent is disabled or deleted.
	Inactive
	// NotFound: there is no such agent.
	NotFound
	// Conflict: there is one already.
	Conflict
	// Refused: the registry refuses the content; another one may pass.
	Refused
	// Gone: this registry does not offer it any more.
	Gone
	// Malformed: its answer cannot be understood.
	Malformed
)

// kinds are verbs after the name of a server.
var kinds = map[Kind]string{
	Unavailable: "is not available", Limited: "limits requests", Unauthorized: "knows no valid session",
	Forbidden: "forbids it", Inactive: "has the agent as not active", NotFound: "knows no such agent",
	Conflict: "has one already", Refused: "refuses it", Gone: "no longer offers it",
	Malformed: "has given an answer that cannot be understood",
}

// Error is a failure. It holds no secrets: of the request, only the path is in it.
type Error struct {
	Kind       Kind
	By         string        // the answering server. Default: the registry
	Status     int           // of HTTP; 0 if there was no answer
	Name       string        // the registry's own name or code of the error; may be empty
	Detail     string        // the registry's words about it; may be empty
	Existing   string        // the AIC of the agent in its way; may be empty
	RetryAfter time.Duration // the wait asked for by the registry; 0 for none
	Cause      error         // of the connection; may be nil
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(cmp.Or(e.By, "the registry") + " " + kinds[e.Kind])
	if e.Status != 0 {
		fmt.Fprintf(&b, " (%d)", e.Status)
	}
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	if e.Cause != nil {
		b.WriteString(": " + e.Cause.Error())
	}
	return b.String()
}

// Unwrap implements the interface of package errors.
func (e *Error) Unwrap() error { return e.Cause }

// Is reports whether an error is one of a registry of a kind.
func Is(err error, kind Kind) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind == kind
}

// IsTransient reports whether the same request may succeed later.
func IsTransient(err error) bool { return Is(err, Unavailable) || Is(err, Limited) }

const (
	maxErrorBody  = 256 << 10 // bytes; a registry repeats the refused ACS
	maxDetail     = 500       // bytes kept of the registry's text
	maxRetryAfter = time.Hour
)

// refusal makes an Error of an answer. It closes the body.
func refusal(res *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody)) // the part read counts
	_ = res.Body.Close()
	e := readError(res.StatusCode, body)
	e.RetryAfter = retryafter.Read(res.Header.Get("Retry-After"), time.Now(), maxRetryAfter)
	return e
}

// The names and codes of errors with more meaning than the status.
const (
	codeInactive  = 40310
	nameInactive  = "AIC_INACTIVE"
	nameBadStatus = "INVALID_STATUS_TRANSITION"
)

// readError reads the body of an error in any of the three forms. Without such a form, the status decides.
func readError(status int, body []byte) *Error {
	var said struct {
		Name   string          `json:"error_name"`
		Title  string          `json:"title"`
		Detail json.RawMessage `json:"detail"` // a text, or a list of mistakes
		Errors []struct {
			Loc []any  `json:"loc"`
			Msg string `json:"msg"`
		} `json:"errors"`
		Error json.RawMessage `json:"error"` // an object; in OAuth, a text
		Text  string          `json:"error_description"`
	}
	e := &Error{Kind: kindOf(status), Status: status}
	if json.Unmarshal(body, &said) != nil {
		return e
	}
	e.Name = printable(said.Name)
	var detail string
	_ = json.Unmarshal(said.Detail, &detail)
	for _, one := range said.Errors {
		if len(detail) > maxDetail { // it is cut off there
			break
		}
		detail += fmt.Sprintf(" %v: %s;", one.Loc, one.Msg)
	}
	var coded struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"` // of any form
	}
	var data struct {
		Existing string `json:"existingAic"`
	}
	var name string
	switch {
	case json.Unmarshal(said.Error, &coded) == nil && coded.Code != 0:
		_ = json.Unmarshal(coded.Data, &data)
		e.Name, detail, e.Existing = strconv.Itoa(coded.Code), coded.Message, printable(data.Existing)
	case json.Unmarshal(said.Error, &name) == nil:
		e.Name, detail = printable(name), said.Text
	}
	if detail == "" {
		detail = said.Title
	}
	e.Detail = printable(strings.TrimSuffix(strings.TrimSpace(detail), ";"))
	if status == http.StatusForbidden && (coded.Code == codeInactive || e.Name == nameInactive) {
		e.Kind = Inactive
	}
	return e
}

// kindOf returns the kind of a status.
func kindOf(status int) Kind {
	switch status {
	case http.StatusUnauthorized:
		return Unauthorized
	case http.StatusForbidden:
		return Forbidden
	case http.StatusNotFound:
		return NotFound
	case http.StatusConflict:
		return Conflict
	case http.StatusGone:
		return Gone
	case http.StatusTooManyRequests:
		return Limited
	case http.StatusRequestTimeout:
		return Unavailable
	}
	switch {
	case status >= 500:
		return Unavailable
	case status >= 400:
		return Refused
	}
	return Malformed // of success or a redirect in another one's place
}

// printable returns a text of the registry for a line of a log, not longer than it is useful.
func printable(s string) string {
	if len(s) > maxDetail {
		s = s[:maxDetail] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}
