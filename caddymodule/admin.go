// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/task"
)

func init() { caddy.RegisterModule(new(Admin)) }

// Admin adds the gateway's own routes to Caddy's admin API: what webhooks were not told yet, and what to do about it.
type Admin struct{}

// CaddyModule returns the Caddy module information.
func (*Admin) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "admin.api.aip", New: func() caddy.Module { return new(Admin) }}
}

// The routes of the admin API.
const (
	adminDeliveries = "/aip/deliveries"
	adminReplay     = "/aip/deliveries/replay"
	adminEndpoints  = "/aip/endpoints"
	adminDisable    = "/aip/endpoints/disable"
	adminEnable     = "/aip/endpoints/enable"
)

// maxAdminBody is the greatest size of a request's body, in bytes.
const maxAdminBody = 1 << 20

// Routes implements caddy.AdminRouter.
func (*Admin) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{
		{Pattern: adminDeliveries, Handler: adminRoute(http.MethodGet, listDeliveries)},
		{Pattern: adminReplay, Handler: adminRoute(http.MethodPost, replayDeliveries)},
		{Pattern: adminEndpoints, Handler: adminRoute(http.MethodGet, listEndpoints)},
		{Pattern: adminDisable, Handler: adminRoute(http.MethodPost, switchEndpoint((*notify.Engine).Disable))},
		{Pattern: adminEnable, Handler: adminRoute(http.MethodPost, switchEndpoint((*notify.Engine).Enable))},
	}
}

// adminRoute makes a route of a function that answers with JSON.
func adminRoute(method string, answer func(*notify.Engine, *http.Request) (any, error)) caddy.AdminHandler {
	return caddy.AdminHandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		if r.Method != method {
			w.Header().Set("Allow", method)
			return caddy.APIError{HTTPStatus: http.StatusMethodNotAllowed, Err: fmt.Errorf("use %s", method)}
		}
		engine := present()
		if engine == nil {
			return caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: errors.New("no aip_gateway is configured")}
		}
		out, err := answer(engine, r)
		if err != nil {
			status := http.StatusInternalServerError
			if task.KindOf(err) == task.InvalidParams {
				status = http.StatusBadRequest
			}
			return caddy.APIError{HTTPStatus: status, Err: err}
		}
		w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(w).Encode(out)
	})
}

// present returns who tells webhooks in the running configuration; nil where nobody does.
func present() (engine *notify.Engine) {
	stores.Range(func(_, value any) bool {
		o := value.(*openStore)
		o.mu.Lock()
		defer o.mu.Unlock()
		if len(o.settings) > 0 {
			engine = o.webhooks
		}
		return true
	})
	return engine
}

// delivery is a notification that was not delivered, as the admin API tells of it.
type delivery struct {
	ID         string        `json:"id"`
	Status     notify.Status `json:"status"`
	Partner    string        `json:"partner"`
	Leader     string        `json:"leader"`
	Task       string        `json:"task"`
	Webhook    string        `json:"webhook"`
	Endpoint   string        `json:"endpoint"`
	Event      uint64        `json:"event"`
	State      task.State    `json:"state"`
	At         time.Time     `json:"at"`
	Attempts   int           `json:"attempts"`
	Next       time.Time     `json:"next,omitzero"`
	LastStatus int           `json:"last_status,omitempty"`
	LastError  string        `json:"last_error,omitempty"`
}

// deliveryPage is a page of them.
type deliveryPage struct {
	Deliveries []delivery `json:"deliveries"`
	Next       string     `json:"next,omitempty"` // to be given as after for more
}

// filterOf reads which deliveries are meant from a query.
func filterOf(q url.Values) (f notify.Filter, err error) {
	for name, values := range q {
		value := values[0]
		switch name {
		case "status":
			f.Status = notify.Status(value)
		case "partner":
			f.Partner = value
		case "leader":
			f.Leader = value
		case "task":
			f.Task = value
		case "webhook":
			f.Webhook = value
		case "host":
			f.Host = value
		case "id":
			f.IDs = values
		case "after":
			f.After = value
		case "limit":
			if f.Limit, err = strconv.Atoi(value); err != nil || f.Limit < 1 {
				return f, task.Errorf(task.InvalidParams, "limit is %q, but must be a whole number above 0", value)
			}
		default:
			return f, task.Errorf(task.InvalidParams, "there is no %q; use status, partner, leader, task, webhook, host, id, after or limit", name)
		}
	}
	switch f.Status {
	case "", notify.Pending, notify.Failing, notify.Dead, notify.Disabled:
		return f, nil
	}
	return f, task.Errorf(task.InvalidParams, "status is %q, but must be pending, failing, dead or disabled", f.Status)
}

func listDeliveries(e *notify.Engine, r *http.Request) (any, error) {
	f, err := filterOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	list, next, err := e.Deliveries(r.Context(), f)
	if err != nil {
		return nil, err
	}
	page := deliveryPage{Deliveries: make([]delivery, 0, len(list)), Next: next}
	for i := range list {
		d := &list[i]
		page.Deliveries = append(page.Deliveries, delivery{
			ID: d.ID, Status: d.Status, Partner: d.Partner, Leader: d.Leader, Task: d.Task, Webhook: d.Webhook, Endpoint: d.Endpoint,
			Event: d.Event, State: d.State, At: d.At, Attempts: d.Attempts, Next: d.Next, LastStatus: d.LastStatus, LastError: d.LastError,
		})
	}
	return page, nil
}

// replayed says how many dead letters are tried again.
type replayed struct {
	Replayed int `json:"replayed"`
}

// replayDeliveries takes its filter from the query, too, so that what was listed can be replayed by the same words.
func replayDeliveries(e *notify.Engine, r *http.Request) (any, error) {
	f, err := filterOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	if f.IDs == nil && f.Status == "" && f.Partner+f.Leader+f.Task+f.Webhook+f.Host == "" {
		return nil, task.Errorf(task.InvalidParams, "say which: by id, task, webhook, host, leader or partner, or all of them by status=dead")
	}
	n, err := e.Replay(r.Context(), f)
	return replayed{n}, err
}

// endpoint is where webhooks are delivered to, as the admin API tells of it.
type endpoint struct {
	Endpoint string    `json:"endpoint"`
	State    string    `json:"state"`
	InFlight int       `json:"in_flight"`
	Queued   int       `json:"queued"`
	Failures int       `json:"failures"`
	Until    time.Time `json:"until,omitzero"`
}

func listEndpoints(e *notify.Engine, r *http.Request) (any, error) {
	list, err := e.Endpoints(r.Context())
	if err != nil {
		return nil, err
	}
	out := make([]endpoint, 0, len(list))
	for _, p := range list {
		out = append(out, endpoint{p.URL, p.State, p.InFlight, p.Queued, p.Failures, p.Until})
	}
	return map[string]any{"endpoints": out}, nil
}

// switchEndpoint disables or enables the endpoint that the body names.
func switchEndpoint(to func(*notify.Engine, context.Context, string) error) func(*notify.Engine, *http.Request) (any, error) {
	return func(e *notify.Engine, r *http.Request) (any, error) {
		var body struct {
			Endpoint string `json:"endpoint"`
		}
		d := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxAdminBody))
		d.DisallowUnknownFields()
		if err := d.Decode(&body); err != nil || body.Endpoint == "" {
			return nil, task.Errorf(task.InvalidParams, `the body must be {"endpoint": "https://host"}`)
		}
		if err := to(e, r.Context(), body.Endpoint); err != nil {
			return nil, err
		}
		return struct {
			Endpoint string `json:"endpoint"`
		}{body.Endpoint}, nil
	}
}

// Interface guards.
var _ caddy.AdminRouter = (*Admin)(nil)
