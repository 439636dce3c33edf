// SPDX-License-Identifier: Apache-2.0

package adp

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/acps/registry/registrytest"
	"github.com/aip-gateway/aip-gateway/internal/openapitest"
)

// captured returns the body of an answer that a real discovery server has given.
func captured(t testing.TB, name string) string {
	t.Helper()
	_, body := registrytest.Captured(t, "discovery/"+name)
	return body
}

// scripted answers the questions of a Client: by whether they name onlyAvailable, or active, or neither.
type scripted struct {
	plain, available, active string
	status                   int
}

func (s scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	if err := openapitest.Discovery().Check(r, text); err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	answer := s.plain
	switch {
	case strings.Contains(string(text), "onlyAvailable"):
		answer = s.available
	case strings.Contains(string(text), `"active"`):
		answer = s.active
	}
	if strings.HasPrefix(answer, `{"error"`) || s.status != 0 {
		w.WriteHeader(max(s.status, http.StatusBadRequest))
	}
	_, _ = io.WriteString(w, answer)
}

func TestAsk(t *testing.T) {
	const (
		known    = "1.2.156.3088.1.0001.00001.RX09I0.911IM4.0XB3"
		inactive = "1.2.156.3088.1.0001.00001.2ZRV50.SGSMLR.0KMU"
	)
	listed, nothing := captured(t, "01-filtered-by-aic"), captured(t, "07-aic-unknown")
	off := captured(t, "15-inactive-by-filter")
	everything := captured(t, "08-unsupported-field") // the reference ignores what it does not know
	alive := func(state string) string {
		return strings.Replace(listed, `"agents":`, `"aliveMap":{"`+strings.ToLower(known)+`":{"alive":`+state+
			`,"aliveLastSeenAt":"2026-06-13T01:20:00Z"}},"agents":`, 1)
	}
	const refused = `{"error":{"code":40004,"message":"FilterInvalid","data":"no such field"}}`
	for name, c := range map[string]struct {
		server scripted
		aic    string
		want   State
		bad    string
	}{
		"found":                    {scripted{plain: listed}, known, Listed, ""},
		"found, in lower case":     {scripted{plain: listed}, strings.ToLower(known), Listed, ""},
		"alive":                    {scripted{plain: alive("true")}, known, Listed, ""},
		"not alive":                {scripted{plain: alive("false")}, known, NotAlive, ""},
		"hidden":                   {scripted{plain: nothing, available: listed}, known, Hidden, ""},
		"inactive":                 {scripted{plain: nothing, available: nothing, active: off}, inactive, Inactive, ""},
		"inactive, by another":     {scripted{plain: nothing, available: refused, active: off}, inactive, Inactive, ""},
		"inactive, and listed":     {scripted{plain: off}, inactive, Inactive, ""},
		"not synced":               {scripted{plain: nothing, available: nothing, active: nothing}, known, NotSynced, ""},
		"another agent":            {scripted{plain: off, available: off, active: off}, known, NotSynced, ""},
		"all others":               {scripted{plain: everything, available: nothing, active: nothing}, known, NotSynced, ""},
		"a filter that is refused": {scripted{plain: refused}, known, "", "FilterInvalid"},
		"no answer of ADP":         {scripted{plain: `<html>`}, known, "", ErrUnclear.Error()},
		"another object":           {scripted{plain: `{"status":"ok"}`}, known, "", ErrUnclear.Error()},
		"an error of the server":   {scripted{plain: `{"detail":"x"}`, status: 500}, known, "", "status 500"},
		"problem details":          {scripted{plain: captured(t, "06d-limit-51"), status: 422}, known, "", "status 422"},
		"too much":                 {scripted{plain: strings.Repeat(" ", maxAnswer+1)}, known, "", "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.server)
			defer server.Close()
			got, err := (&Client{URL: server.URL + "/acps-adp-v2/", HTTP: server.Client()}).Ask(t.Context(), c.aic)
			if c.bad != "" {
				if err == nil || !strings.Contains(err.Error(), c.bad) {
					t.Errorf("%v %v, want an error with %s", got, err, c.bad)
				}
				return
			}
			if err != nil || got.State != c.want {
				t.Errorf("%v %v, want %s", got, err, c.want)
			}
			if says := strings.Contains(c.server.plain, "aliveMap"); says == got.Seen.IsZero() {
				t.Errorf("seen at %v", got.Seen)
			}
		})
	}
}

// TestAskLate: an answer that does not come in time, or breaks off, is an error, and the other questions are not asked.
func TestAskLate(t *testing.T) {
	var asked atomic.Int32
	stop := make(chan struct{})
	late := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"result"`)
			return // breaks off
		}
		<-stop
	}))
	defer late.Close()
	defer close(stop)
	client := &Client{URL: late.URL, HTTP: late.Client()}
	if _, err := client.Ask(t.Context(), food); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("an answer that breaks off: %v", err)
	}
	client.HTTP.Timeout = time.Second
	if _, err := client.Ask(t.Context(), food); err == nil || !os.IsTimeout(err) || asked.Load() != 2 {
		t.Errorf("a late answer: %v, after %d questions", err, asked.Load())
	}
}

func FuzzAnswer(f *testing.F) {
	for _, name := range []string{"01-filtered-by-aic", "07-aic-unknown", "05-exploratory-cpu-mode", "06d-limit-51"} {
		f.Add(200, captured(f, name))
	}
	f.Fuzz(func(t *testing.T, status int, answer string) {
		if s, err := parseAnswer(status, []byte(answer), food); err != nil && s != nil {
			t.Errorf("%v and %v", s, err)
		}
	})
}
