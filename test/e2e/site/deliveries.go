// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"net/url"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// Delivery is a notification that was not delivered, as the admin API shows it.
type Delivery struct {
	ID         string     `json:"id"`
	Status     string     `json:"status"`
	Partner    string     `json:"partner"`
	Leader     string     `json:"leader"`
	Task       string     `json:"task"`
	Webhook    string     `json:"webhook"`
	Endpoint   string     `json:"endpoint"`
	Path       string     `json:"path"`
	State      task.State `json:"state"`
	Attempts   int        `json:"attempts"`
	Next       time.Time  `json:"next"`
	LastStatus int        `json:"last_status"`
	LastError  string     `json:"last_error"`
	Recent     []attempt  `json:"recent_attempts"`
}

// attempt is an attempt to deliver a notification that failed, as the admin API shows it.
type attempt struct {
	At       time.Time `json:"at"`
	Duration int       `json:"duration_ms"`
	Status   int       `json:"status"`
	Error    string    `json:"error"`
}

// Endpoint is where webhooks are delivered to, as the admin API shows it.
type Endpoint struct {
	Endpoint string `json:"endpoint"`
	State    string `json:"state"`
	InFlight int    `json:"in_flight"`
	Queued   int    `json:"queued"`
	URLs     []struct {
		Path      string  `json:"path"`
		Dead      int     `json:"dead"`
		Attempts  int     `json:"attempts"`
		Delivered int     `json:"delivered"`
		Median    float64 `json:"median_ms"`
	} `json:"urls"`
}

// Deliveries returns what the admin API lists, of all pages.
func (s *Site) Deliveries(query string) (all []Delivery) {
	s.T.Helper()
	for after := ""; ; {
		var page struct {
			Deliveries []Delivery `json:"deliveries"`
			Next       string     `json:"next"`
		}
		s.AdminCall("GET", "/aip/deliveries?"+query+after, "", &page)
		if all = append(all, page.Deliveries...); page.Next == "" {
			return all
		}
		if len(all) > 10_000 {
			s.T.Fatal("the pages have no end")
		}
		after = "&after=" + url.QueryEscape(page.Next)
		if query == "" {
			after = after[1:]
		}
	}
}

// Endpoints returns the endpoints of webhooks that the admin API lists.
func (s *Site) Endpoints() []Endpoint {
	s.T.Helper()
	var answer struct {
		Endpoints []Endpoint `json:"endpoints"`
	}
	s.AdminCall("GET", "/aip/endpoints", "", &answer)
	return answer.Endpoints
}

// Enable has everything that waits for an endpoint tried now. It is how tests need not wait for what comes by itself,
// minutes later.
func (s *Site) Enable(origin string) { s.T.Helper(); s.Turn("enable", origin) }

// Turn enables or disables the endpoint of a webhook.
func (s *Site) Turn(how, origin string) {
	s.T.Helper()
	var answer struct{ Endpoint string }
	if s.AdminCall("POST", "/aip/endpoints/"+how, `{"endpoint":"`+origin+`"}`, &answer); answer.Endpoint != origin {
		s.T.Errorf("%s of %s is answered %+v", how, origin, answer)
	}
}

// Dead waits until a number of notifications is dead, and returns them.
func (s *Site) Dead(n int) (all []Delivery) {
	s.T.Helper()
	Eventually(s.T, fmt.Sprintf("%d notifications are dead", n), func() bool {
		all = s.Deliveries("status=dead")
		return len(all) == n
	})
	return all
}
