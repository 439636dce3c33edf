// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// endpointLine is a line of the list of endpoints: an endpoint, or one of its URLs if it has several.
type endpointLine struct {
	adminapi.Of
	endpoint *adminapi.Endpoint // nil for a line of a URL
	url      *adminapi.EndpointURL
}

// endpoints are the destinations of webhooks.
var endpoints = &listing[adminapi.EndpointList, endpointLine]{
	path: adminapi.Endpoints,
	entries: func(l *adminapi.EndpointList) (lines []endpointLine, next string) {
		for i := range l.Endpoints {
			e := &l.Endpoints[i]
			if len(e.URLs) == 1 {
				lines = append(lines, endpointLine{e.Of, e, &e.URLs[0]})
				continue
			}
			lines = append(lines, endpointLine{e.Of, e, nil})
			for j := range e.URLs {
				lines = append(lines, endpointLine{e.Of, nil, &e.URLs[j]})
			}
		}
		return lines, ""
	},
	header: "ENDPOINT\tSTATE\tWAITING\tDEAD\tIN FLIGHT\tFAILURES\tDELIVERED\tTOOK",
	row: func(l *endpointLine) string {
		name, state, waiting, flight, failures := "", "", 0, "", ""
		if e := l.endpoint; e != nil {
			name, state, waiting = e.URL, stateOfEndpoint(e), e.Queued
			flight, failures = fmt.Sprint(e.InFlight), fmt.Sprint(e.Failures)
		}
		dead, delivered, took := "", "", ""
		if u := l.url; u != nil {
			if l.endpoint == nil {
				name, waiting = "  ", u.Queued
			}
			name += u.Path
			dead, delivered, took = fmt.Sprint(u.Dead), "-", "-"
			if u.Attempts > 0 {
				delivered = fmt.Sprintf("%d%% of %d", 100*u.Delivered/u.Attempts, u.Attempts)
				took = fmt.Sprintf("%s, 95%% %s", shortly(u.MedianMS), shortly(u.P95MS))
			}
		}
		return fmt.Sprintf("%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s", clean(name), clean(state), waiting, dead, flight, failures,
			delivered, took)
	},
	none: "No notifications were delivered recently, and none wait.",
}

// stateOfEndpoint returns the state of an endpoint in words.
func stateOfEndpoint(e *adminapi.Endpoint) string {
	switch {
	case !e.Until.IsZero():
		return e.State + " until " + e.Until.Local().Format(time.TimeOnly)
	case !e.Since.IsZero():
		return e.State + " by the operator since " + stamp(e.Since)
	}
	return e.State
}

// shortly writes milliseconds.
func shortly(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	if d >= 10*time.Millisecond {
		d = d.Round(time.Millisecond)
	}
	return d.String()
}

// showAttempts prints the last attempts to deliver notifications, with their bodies.
func showAttempts(a *asking) func([]string) error {
	a.jsonFlag("")
	limit := a.Flags().Int("limit", 20, "the largest number of attempts, 100 at most")
	return func(args []string) error {
		q := a.query(a.route)
		for _, id := range args {
			q.Add("id", id)
		}
		q.Set("limit", fmt.Sprint(*limit))
		return printAttempts(a, q)
	}
}

func printAttempts(a *asking, q url.Values) error {
	var list adminapi.ExchangeList
	raw, err := a.ask(a.route, q, nil, &list)
	if err != nil {
		return err
	}
	if lacks := strings.Join(list.Missing, ", "); lacks != "" {
		a.PrintErrln("the list is not complete: no answer from " + clean(lacks))
	}
	var text strings.Builder
	for i := range list.Exchanges {
		e := &list.Exchanges[i]
		fmt.Fprintf(&text, "%s  %s after %dms  %s\n", stamp(e.At), clean(resultOf(e.Status, e.Error)), e.DurationMS,
			clean(e.Endpoint+e.Path))
		fmt.Fprintf(&text, "task %s, event %d, %s: %s\n", clean(e.Task), e.Event, clean(string(e.State)), clean(e.ID))
		writeBody(&text, "request", e.Request)
		writeBody(&text, "answer", e.Answer)
		text.WriteByte('\n')
	}
	switch {
	case len(list.Exchanges) > 0:
	case list.Kept:
		text.WriteString("No such attempt is kept.\n")
	default:
		text.WriteString("No attempts are kept: the configuration has no notify { keep_bodies }.\n")
	}
	return a.print(raw, strings.TrimSuffix(text.String(), "\n"))
}

// writeBody writes a body, line by line.
func writeBody(w *strings.Builder, name string, b adminapi.Body) {
	if b.Bytes == 0 {
		fmt.Fprintf(w, "  %s: empty\n", name)
		return
	}
	fmt.Fprintf(w, "  %s of %d bytes:\n", name, b.Bytes)
	for line := range strings.Lines(b.Text) {
		fmt.Fprintf(w, "    %s\n", clean(strings.TrimRight(line, "\r\n")))
	}
}
