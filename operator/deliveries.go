// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"

	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// filterOf reads a filter of deliveries from a query.
func filterOf(q url.Values) (f notify.Filter, err error) {
	f = notify.Filter{Status: notify.Status(q.Get("status")), Partner: q.Get("partner"), Leader: q.Get("leader"),
		Task: q.Get("task"), Webhook: q.Get("webhook"), Host: q.Get("host"), URL: q.Get("endpoint"),
		IDs: q["id"], After: q.Get("after")}
	switch f.Status {
	case "", notify.Pending, notify.Failing, notify.Dead, notify.Disabled:
	default:
		return f, task.Errorf(task.InvalidParams,
			"status is %q, but must be pending, failing, dead or disabled", f.Status)
	}
	if err = f.Check(); err != nil {
		return f, err
	}
	if f.Since, err = readMoment(q, "since"); err != nil {
		return f, err
	}
	if f.Until, err = readMoment(q, "until"); err != nil {
		return f, err
	}
	f.Limit, err = readLimit(q)
	return f, err
}

func listDeliveries(a *Admin, r *http.Request) (any, error) {
	f, err := filterOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	list, next, err := a.Tasks.Webhooks().Deliveries(r.Context(), f)
	if err != nil {
		return nil, err
	}
	page := adminapi.DeliveryPage{Deliveries: make([]adminapi.Delivery, 0, len(list)), Next: next}
	for i := range list {
		d := &list[i]
		page.Deliveries = append(page.Deliveries, adminapi.Delivery{
			ID: d.ID, Status: d.Status, Partner: d.Partner, Leader: d.Leader, Task: d.Task, Webhook: d.Webhook,
			Endpoint: d.Endpoint, Path: d.Path, Event: d.Event, State: d.State, At: d.At, Reason: d.Reason,
			Attempts: d.Attempts, Next: d.Next, LastStatus: d.LastStatus, LastError: d.LastError,
			Recent: attemptsOf(d.Recent), OfAgent: a.agent(d.Partner),
		})
	}
	return page, nil
}

func attemptsOf(list []notify.Attempt) (out []adminapi.Attempt) {
	for _, a := range list {
		out = append(out, attemptOf(a))
	}
	return out
}

func attemptOf(a notify.Attempt) adminapi.Attempt {
	return adminapi.Attempt{At: a.At, DurationMS: a.Duration.Milliseconds(), Status: a.Status, Error: a.Error}
}

// Sizes of a list of attempts with their bodies.
const (
	defaultExchanges = 20
	maxExchanges     = 100
)

// listExchanges answers with the last attempts and their bodies.
func listExchanges(a *Admin, r *http.Request) (any, error) {
	f, err := filterOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	list, kept := a.Tasks.Webhooks().Exchanges(f, min(cmp.Or(f.Limit, defaultExchanges), maxExchanges))
	out := adminapi.ExchangeList{Kept: kept, Exchanges: make([]adminapi.Exchange, 0, len(list))}
	for i := range list {
		e := &list[i]
		out.Exchanges = append(out.Exchanges, adminapi.Exchange{
			Attempt: attemptOf(e.Attempt), OfAgent: a.agent(e.Partner), Delivered: e.Delivered, ID: e.ID, Partner: e.Partner,
			Leader: e.Leader, Task: e.Task, Webhook: e.Webhook, Endpoint: e.Endpoint, Path: e.Path, Event: e.Event,
			State: e.State, Request: adminapi.Body(e.Request), Answer: adminapi.Body(e.Answer),
		})
	}
	return out, nil
}

// allExchanges answers with the last attempts of all gateways.
func allExchanges(a *Admin, r *http.Request, q question) (any, error) {
	limit, err := pageLimit(r.URL.Query(), defaultExchanges, maxExchanges)
	if err != nil {
		return nil, err
	}
	all, missing, err := askNodes[adminapi.ExchangeList](a, r, q)
	if err != nil {
		return nil, err
	}
	out := adminapi.ExchangeList{Partial: adminapi.Partial{Missing: missing}, Exchanges: []adminapi.Exchange{}}
	for _, one := range all {
		out.Kept = out.Kept || one.page.Kept
		out.Exchanges = append(out.Exchanges, named(one.page.Exchanges, one.name)...)
	}
	slices.SortStableFunc(out.Exchanges, func(a, b adminapi.Exchange) int { return b.At.Compare(a.At) })
	out.Exchanges = out.Exchanges[:min(len(out.Exchanges), limit)]
	return out, nil
}

// replayDeliveries has the same query as listDeliveries, so that listed deliveries can be replayed by the same filter.
func replayDeliveries(e notify.Engines, r *http.Request) (any, error) {
	f, err := filterOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	if f.IDs == nil && f.Status == "" && f.Partner+f.Leader+f.Task+f.Webhook+f.Host+f.URL == "" &&
		f.Since.IsZero() && f.Until.IsZero() {
		return nil, task.Errorf(task.InvalidParams, "say which: by id, task, webhook, host, endpoint, leader, partner or "+
			"since, or all of them by status=dead")
	}
	switch text := r.URL.Query().Get("dry_run"); text {
	case "", "false":
	case "true":
		n, err := e.Replayable(r.Context(), f)
		return adminapi.Replayed{Selected: n}, err
	default:
		return nil, task.Errorf(task.InvalidParams, "dry_run is %q, but must be true or false", text)
	}
	n, err := e.Replay(r.Context(), f)
	return adminapi.Replayed{Replayed: n}, err
}

// listWebhooks answers with the webhooks of a task.
func listWebhooks(a *Admin, r *http.Request) (any, error) {
	of, err := taskNameOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	_, e, err := a.Tasks.Of(of.Partner, of.Leader)
	if err != nil {
		return nil, err
	}
	list, err := e.Progress(r.Context(), of.Partner, of.Leader, of.Task)
	if err != nil {
		return nil, err
	}
	out := make([]adminapi.Webhook, 0, len(list))
	for _, p := range list {
		out = append(out, adminapi.Webhook(p))
	}
	return adminapi.WebhookList{Webhooks: out}, nil
}

var allDeliveries = paged(func(p *adminapi.DeliveryPage) listFields[adminapi.Delivery] {
	return listFields[adminapi.Delivery]{&p.Deliveries, &p.Missing, &p.Next}
})

func addReplayed(into, of *adminapi.Replayed) {
	into.Replayed, into.Selected = into.Replayed+of.Replayed, into.Selected+of.Selected
}
