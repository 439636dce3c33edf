// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/agentca"
	"github.com/aip-gateway/aip-gateway/caddymodule/adminapi"
	"github.com/aip-gateway/aip-gateway/notify"
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
	adminapi.ReplayDeliveries: ofWebhooks(replayDeliveries),
	adminapi.Webhooks:         listWebhooks,
	adminapi.Endpoints:        ofWebhooks(listEndpoints),
	adminapi.DisableEndpoint:  ofWebhooks(switchEndpoint(notify.Engines.Disable)),
	adminapi.EnableEndpoint:   ofWebhooks(switchEndpoint(notify.Engines.Enable)),
	adminapi.Groups:           listGroups,
	adminapi.LeaveGroup:       leaveGroup,
	adminapi.AgentCardOf:      showAgentCard,
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
	return func(o *openStore, r *http.Request) (any, error) { return answer(o.tasks.Webhooks(), r) }
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
		if route.Query != nil {
			if err := checkQuery(r.URL.Query(), route.Query...); err != nil {
				return refusal(err)
			}
		}
		return serve(o, w, o.resolved(r))
	}
}

// refusal is the answer to a request that has failed: the sentence of the error, without its kind, which the status
// shows.
func refusal(err error) caddy.APIError {
	return caddy.APIError{HTTPStatus: adminStatus(err), Err: errors.New(explained(err))}
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
		if !slices.Contains(names, name) {
			return task.Errorf(task.InvalidParams, "there is no %q; use %s", name, oneOf(names))
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

// filterOf reads a filter of deliveries from a query.
func filterOf(q url.Values) (f notify.Filter, err error) {
	f = notify.Filter{Status: notify.Status(q.Get("status")), Partner: q.Get("partner"), Leader: q.Get("leader"),
		Task: q.Get("task"), Webhook: q.Get("webhook"), Host: q.Get("host"), IDs: q["id"], After: q.Get("after")}
	switch f.Status {
	case "", notify.Pending, notify.Failing, notify.Dead, notify.Disabled:
	default:
		return f, task.Errorf(task.InvalidParams,
			"status is %q, but must be pending, failing, dead or disabled", f.Status)
	}
	f.Limit, err = readLimit(q)
	return f, err
}

func listDeliveries(o *openStore, r *http.Request) (any, error) {
	f, err := filterOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	list, next, err := o.tasks.Webhooks().Deliveries(r.Context(), f)
	if err != nil {
		return nil, err
	}
	page := adminapi.DeliveryPage{Deliveries: make([]adminapi.Delivery, 0, len(list)), Next: next}
	for i := range list {
		d := &list[i]
		page.Deliveries = append(page.Deliveries, adminapi.Delivery{
			ID: d.ID, Status: d.Status, Partner: d.Partner, Leader: d.Leader, Task: d.Task, Webhook: d.Webhook,
			Endpoint: d.Endpoint, Event: d.Event, State: d.State, At: d.At,
			Attempts: d.Attempts, Next: d.Next, LastStatus: d.LastStatus, LastError: d.LastError,
			Recent: attemptsOf(d.Recent), OfAgent: o.agent(d.Partner),
		})
	}
	return page, nil
}

func attemptsOf(list []notify.Attempt) (out []adminapi.Attempt) {
	for _, a := range list {
		out = append(out, adminapi.Attempt{
			At: a.At, DurationMS: a.Duration.Milliseconds(), Status: a.Status, Error: a.Error,
		})
	}
	return out
}

// replayDeliveries has the same query as listDeliveries, so that listed deliveries can be replayed by the same filter.
func replayDeliveries(e notify.Engines, r *http.Request) (any, error) {
	f, err := filterOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	if f.IDs == nil && f.Status == "" && f.Partner+f.Leader+f.Task+f.Webhook+f.Host == "" {
		return nil, task.Errorf(task.InvalidParams,
			"say which: by id, task, webhook, host, leader or partner, or all of them by status=dead")
	}
	n, err := e.Replay(r.Context(), f)
	return adminapi.Replayed{Replayed: n}, err
}

// listWebhooks answers with the webhooks of a task.
func listWebhooks(o *openStore, r *http.Request) (any, error) {
	q := r.URL.Query()
	if q.Get("partner") == "" || q.Get("leader") == "" || q.Get("task") == "" {
		return nil, errUnnamedTask
	}
	_, e, err := o.tasks.Of(q.Get("partner"), q.Get("leader"))
	if err != nil {
		return nil, err
	}
	list, err := e.Progress(r.Context(), q.Get("partner"), q.Get("leader"), q.Get("task"))
	if err != nil {
		return nil, err
	}
	out := make([]adminapi.Webhook, 0, len(list))
	for _, p := range list {
		out = append(out, adminapi.Webhook(p))
	}
	return adminapi.WebhookList{Webhooks: out}, nil
}

func listEndpoints(e notify.Engines, r *http.Request) (any, error) {
	list, err := e.Endpoints(r.Context())
	if err != nil {
		return nil, err
	}
	out := make([]adminapi.Endpoint, 0, len(list))
	for _, p := range list {
		out = append(out, adminapi.Endpoint{URL: p.URL, State: p.State, InFlight: p.InFlight, Queued: p.Queued,
			Failures: p.Failures, Until: p.Until})
	}
	return adminapi.EndpointList{Endpoints: out}, nil
}

// switchEndpoint disables or enables the endpoint that the body names.
func switchEndpoint(
	to func(notify.Engines, context.Context, string) error,
) func(notify.Engines, *http.Request) (any, error) {
	return func(e notify.Engines, r *http.Request) (any, error) {
		var body adminapi.EndpointName
		if err := readBody(r, &body, `{"endpoint": "https://host"}`, &body.Endpoint); err != nil {
			return nil, err
		}
		name, err := notify.ParseEndpoint(body.Endpoint)
		if err != nil {
			return nil, err
		}
		if err := to(e, r.Context(), name); err != nil {
			return nil, err
		}
		return adminapi.EndpointName{Endpoint: name}, nil
	}
}

// Interface guards.
var _ caddy.AdminRouter = (*Admin)(nil)
