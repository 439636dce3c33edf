// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// ofWebhooks makes an answer of one that needs the webhooks only.
func ofWebhooks(of func(notify.Engines, *http.Request) (any, error)) answer {
	return func(a *Admin, r *http.Request) (any, error) { return of(a.Tasks.Webhooks(), r) }
}

func listEndpoints(e notify.Engines, r *http.Request) (any, error) {
	list, err := e.Endpoints(r.Context())
	if err != nil {
		return nil, err
	}
	out := make([]adminapi.Endpoint, 0, len(list))
	for _, p := range list {
		one := adminapi.Endpoint{URL: p.URL, State: p.State, InFlight: p.InFlight, Queued: p.Queued,
			Failures: p.Failures, Until: p.Until, Since: p.Since, URLs: make([]adminapi.EndpointURL, 0, len(p.URLs))}
		for _, u := range p.URLs {
			one.URLs = append(one.URLs, adminapi.EndpointURL{
				Path: u.Path, Queued: u.Queued, Dead: u.Dead, Attempts: u.Rate.Attempts, Delivered: u.Rate.Delivered,
				First: u.Rate.Since, MedianMS: milliseconds(u.Rate.Median), P95MS: milliseconds(u.Rate.P95),
			})
		}
		out = append(out, one)
	}
	return adminapi.EndpointList{Endpoints: out}, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

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

var allEndpoints = merged(func(l *adminapi.EndpointList) listFields[adminapi.Endpoint] {
	return listFields[adminapi.Endpoint]{entries: &l.Endpoints, missing: &l.Missing}
}, func(a, b adminapi.Endpoint) int { return cmp.Compare(a.URL, b.URL) })

// switchAll has all gateways disable or enable an endpoint.
var switchAll = everywhere(func(into, of *adminapi.EndpointName) { *into = *of })
