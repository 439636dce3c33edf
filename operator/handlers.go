// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// Handler answers a request, or returns why it does not. Then it has written nothing, but where an answer breaks off.
type Handler func(http.ResponseWriter, *http.Request) error

// ServeHTTP answers a request, and one that has failed with the error as JSON.
func (h Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h(w, r); err != nil {
		refused := Refused(err, sentenceOf)
		adminapi.Refuse(w, refused.Status, refused.Reason)
	}
}

// Refusal is the answer to a request that has failed.
type Refusal struct {
	Status int
	Reason string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Reason }

// Refused returns the answer to a request that has failed. sentence returns that of an error, without its kind, which
// the status shows.
func Refused(err error, sentence func(error) string) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	return &Refusal{Status: statusOf(err), Reason: sentence(err)}
}

// sentenceOf returns the sentence of an error.
func sentenceOf(err error) string {
	if e, ok := errors.AsType[*task.Error](err); ok {
		return cmp.Or(e.Detail, err.Error())
	}
	return err.Error()
}

// statusOf returns the HTTP status of an error.
func statusOf(err error) int {
	switch task.KindOf(err) {
	case task.InvalidParams:
		return http.StatusBadRequest
	case task.TaskNotFound:
		return http.StatusNotFound
	case task.TaskNotCancelable, task.UnsupportedOperation:
		return http.StatusConflict
	case task.LimitExceeded:
		return http.StatusTooManyRequests
	case task.StoreUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// Handlers returns what answers the routes of package adminapi, by path: all but those of health. running returns the
// Admin of the running configuration.
func Handlers(running func() (*Admin, error)) map[string]Handler {
	all := make(map[string]Handler, len(routes))
	for _, r := range adminapi.Routes {
		if of, ok := routes[r.Path]; ok {
			all[r.Path] = admitted(&r, running, of)
		}
	}
	return all
}

// admitted makes a handler for requests that the table of routes allows.
func admitted(route *adminapi.Route, running func() (*Admin, error), of route) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if !slices.Contains(strings.Split(route.Method, ", "), r.Method) {
			w.Header().Set("Allow", route.Method)
			return &Refusal{http.StatusMethodNotAllowed, "use " + route.Method}
		}
		a, err := running()
		if err != nil {
			return err
		}
		q, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil { // what can be read of it may select more than is meant
			return task.Errorf(task.InvalidParams, "the query cannot be read (%v); encode its values with percent signs", err)
		}
		if err := checkQuery(q, route.Query...); err != nil {
			return err
		}
		return of.serve(a, w, a.resolved(r))
	}
}

// resolved returns a request whose query names the Partner as its tasks are stored.
func (a *Admin) resolved(r *http.Request) *http.Request {
	q := r.URL.Query()
	typed := q.Get("partner")
	partner := a.partnerOf(typed)
	if partner == typed {
		return r
	}
	q.Set("partner", partner)
	r = r.Clone(r.Context())
	r.URL.RawQuery = q.Encode()
	return r
}

// route is how requests of a path are answered that were admitted: by alone and several, or by stream.
type route struct {
	alone   answer
	several sharedAnswer // where gateways share the store; nil for alone, by the one that is asked
	stream  func(*Admin, http.ResponseWriter, *http.Request) error
}

// answer answers a request with what is made JSON.
type answer func(*Admin, *http.Request) (any, error)

// serve answers a request.
func (of route) serve(a *Admin, w http.ResponseWriter, r *http.Request) error {
	if of.stream != nil {
		return of.stream(a, w, r)
	}
	out, err := of.answer(a, r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(out)
}
