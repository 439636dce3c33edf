// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/acps/agentca"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
)

func init() { caddy.RegisterModule(new(Admin)) }

// Admin adds the routes of package adminapi to Caddy's admin API.
type Admin struct{}

// CaddyModule returns the Caddy module information.
func (*Admin) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "admin.api.aip", New: func() caddy.Module { return new(Admin) }}
}

// maxAdminBody is the largest size of a request's body, in bytes.
const maxAdminBody = 1 << 20

// adminAnswers are the answers of a gateway for itself, by path.
var adminAnswers = map[string]adminAnswer{
	adminapi.Deliveries:       listDeliveries,
	adminapi.Exchanges:        listExchanges,
	adminapi.ReplayDeliveries: ofWebhooks(replayDeliveries),
	adminapi.Webhooks:         listWebhooks,
	adminapi.Endpoints:        ofWebhooks(listEndpoints),
	adminapi.DisableEndpoint:  ofWebhooks(switchEndpoint(notify.Engines.Disable)),
	adminapi.EnableEndpoint:   ofWebhooks(switchEndpoint(notify.Engines.Enable)),
	adminapi.Groups:           listGroups,
	adminapi.LeaveGroup:       leaveGroup,
	adminapi.AgentCardOf:      showAgentCard,
	adminapi.AgentSettingsOf:  showAgentSettings,
	adminapi.OverviewOf:       showOverview,
	adminapi.Tasks:            listTasks,
	adminapi.TaskCounts:       countTasks,
	adminapi.TaskEvents:       listTaskEvents,
	adminapi.ShowTask:         showContents,
	adminapi.CancelTask:       endTask((*partner.Engine).Cancel),
	adminapi.FailTask:         endTask((*partner.Engine).Fail),
	adminapi.Streams:          listStreams,
	adminapi.Drain:            drain,
	adminapi.Cluster:          reportCluster,
	adminapi.MoveShard:        moveShard,
	adminapi.DrainNode:        drainNode,
	adminapi.Store:            reportStore(false),
	adminapi.VerifyStore:      reportStore(true),
	adminapi.BackupStore:      backupStore,
	adminapi.PolicyRules:      listRules,
	adminapi.QuotaUses:        listQuotas,
	adminapi.Issuers:          listIssuers,
	adminapi.CheckDiscovery:   checkDiscovery,
	adminapi.Registrations:    registrations,
	adminapi.Withdraw:         withdraw,

	adminapi.Certificates:       listCertificates,
	adminapi.RenewCertificates:  onCertificates((*agentca.Keeper).Renew),
	adminapi.RetireCertificates: onCertificates((*agentca.Keeper).Retire),
}

// adminHandlers are the handlers of all routes but those of health, by path.
func adminHandlers() map[string]adminServer {
	all := map[string]adminServer{
		adminapi.TailTasks:   tailTasks,
		adminapi.ExportStore: exportStore,
		adminapi.TryPartner:  answer(tryPartner),
	}
	for path, of := range adminAnswers {
		all[path] = answer(of)
	}
	for path, several := range spreadAnswers {
		all[path] = answer(either(adminAnswers[path], several))
	}
	return all
}

// Routes implements caddy.AdminRouter.
func (*Admin) Routes() (list []caddy.AdminRoute) {
	handlers := adminHandlers()
	for _, route := range adminapi.Routes {
		handler := caddy.AdminHandlerFunc(serveHealth) // which answers also where there is no store
		if h := handlers[route.Path]; h != nil {
			handler = admitted(&route, h)
		}
		list = append(list, caddy.AdminRoute{Pattern: route.Path, Handler: handler})
	}
	return list
}

// adminServer answers a request that was admitted, by the store of the running configuration.
type adminServer func(*openStore, http.ResponseWriter, *http.Request) error

// adminAnswer answers a request with what is made JSON.
type adminAnswer func(*openStore, *http.Request) (any, error)

// answer makes a handler of an answer.
func answer(of adminAnswer) adminServer {
	return func(o *openStore, w http.ResponseWriter, r *http.Request) error {
		out, err := of(o, r)
		if err != nil {
			return refusal(err)
		}
		w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(w).Encode(out)
	}
}

// ofWebhooks makes an answer of one that needs the webhooks only.
func ofWebhooks(answer func(notify.Engines, *http.Request) (any, error)) adminAnswer {
	return func(o *openStore, r *http.Request) (any, error) { return answer(o.Tasks.Webhooks(), r) }
}

// admitted makes a handler for requests that the table of routes allows.
func admitted(route *adminapi.Route, serve adminServer) caddy.AdminHandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		if !slices.Contains(strings.Split(route.Method, ", "), r.Method) {
			w.Header().Set("Allow", route.Method)
			return caddy.APIError{HTTPStatus: http.StatusMethodNotAllowed, Err: fmt.Errorf("use %s", route.Method)}
		}
		o := running()
		if o == nil {
			err := errors.New("no aip_gateway is configured")
			return caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: err}
		}
		q, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil { // what can be read of it may select more than is meant
			err = task.Errorf(task.InvalidParams, "the query cannot be read (%v); encode its values with percent signs", err)
		} else {
			err = checkQuery(q, route.Query...)
		}
		if err != nil {
			return refusal(err)
		}
		return serve(o, w, o.resolved(r))
	}
}

// refusal is the answer to a request that has failed: the sentence of the error, without its kind, which the status
// shows.
func refusal(err error) caddy.APIError {
	return caddy.APIError{HTTPStatus: adminStatus(err), Err: errors.New(doctor.Explained(err))}
}

// adminStatus returns the HTTP status of an error.
func adminStatus(err error) int {
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

// checkQuery refuses parameters that a route does not have.
func checkQuery(q url.Values, names ...string) error {
	for name := range q {
		if len(names) == 0 {
			return task.Errorf(task.InvalidParams, "there is no %q: the route takes no parameters", name)
		}
		if !slices.Contains(names, name) {
			return task.Errorf(task.InvalidParams, "there is no %q; use %s", name, conf.OneOf(names))
		}
	}
	return nil
}

// readBody decodes the body of a request, in which some members must not be empty. form says what a body must be.
func readBody(r *http.Request, into any, form string, needed ...*string) error {
	d := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxAdminBody))
	d.DisallowUnknownFields()
	bad := d.Decode(into) != nil
	for _, member := range needed {
		bad = bad || *member == ""
	}
	if bad {
		return errBody(form)
	}
	return nil
}

// errBody refuses a body that is not of a form.
func errBody(form string) error { return task.Errorf(task.InvalidParams, "the body must be %s", form) }

// readLimit reads the size of a page from a query; 0 if there is none.
func readLimit(q url.Values) (int, error) {
	if !q.Has("limit") {
		return 0, nil
	}
	text := q.Get("limit")
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, task.Errorf(task.InvalidParams, "limit is %q, but must be a whole number above 0", text)
	}
	return n, nil
}

// readNumber reads the number of something from a query; 0 if there is none.
func readNumber(q url.Values, name, of string) (uint64, error) {
	text := q.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, task.Errorf(task.InvalidParams, "%s is %q, but must be %s", name, text, of)
	}
	return n, nil
}

// readMoment reads a time, or how long it is ago, from a query; the zero time if there is none.
func readMoment(q url.Values, name string) (at time.Time, err error) {
	text := q.Get(name)
	if text == "" {
		return at, nil
	}
	if at, err = time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	ago, err := caddy.ParseDuration(text)
	if err != nil || ago <= 0 {
		return at, task.Errorf(task.InvalidParams,
			"%s is %q, but must be a time such as 2026-03-01T10:00:00Z, or how long it is ago, such as 10m", name, text)
	}
	return time.Now().Add(-ago), nil
}

// Interface guards.
var _ caddy.AdminRouter = (*Admin)(nil)
