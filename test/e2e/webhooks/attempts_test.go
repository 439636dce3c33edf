// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	gocmp "github.com/google/go-cmp/cmp"
)

// inTurn gives one answer after the other, and then the last one for ever.
func inTurn(all ...site.Response) func(*site.Notice) site.Response {
	return func(*site.Notice) site.Response {
		next := all[0]
		if len(all) > 1 {
			all = all[1:]
		}
		return next
	}
}

// TestDeliveryAttempts holds how each attempt of a notification has failed, as the admin API and the command show it:
// while it fails, as a dead letter, after kill -9, and when it is replayed, until it is delivered.
func TestDeliveryAttempts(t *testing.T) {
	t.Parallel()
	agent, late, dead := site.NewFakeAgent(t, nil), site.NewSink(t), site.NewSink(t)
	s := site.Serve(t, site.Config{Notify: site.AllowHere + "timeout 10s\nattempts 6",
		Handle: "aip_gateway a2a/legacy " + agent.URL})
	leader := site.LeaderOf(t, s.URL())
	late.Answers(inTurn(site.Refusal(500), site.Hangs(), resets(), site.Refusal(404)))
	dead.Answers(inTurn(site.Refusal(500), site.Hangs(), resets(), site.Refusal(404)))
	history := site.BeginWithWebhook(leader, "late", late.Origin()+"/hook")
	site.BeginWithWebhook(leader, "dead", dead.Origin()+"/hook")
	const internal, notFound = "Internal Server Error", "Not Found"
	const silence, reset = "the receiver did not answer within 10s", "the connection was closed without an answer"

	find := func(what, query string, ok func([]site.Delivery) bool) (all []site.Delivery) {
		t.Helper()
		site.Eventually(t, what, func() bool {
			all = s.Deliveries(query)
			return ok(all)
		})
		return all
	}
	want := func(d *site.Delivery, status string, attempts int, results ...string) {
		t.Helper()
		if diff := gocmp.Diff(results, resultsOf(d)); diff != "" || d.Status != status || d.Attempts != attempts {
			t.Errorf("%+v\n(-want +got):\n%s", d, diff)
		}
	}

	// While it fails. The next attempt is due 15 s later.
	failing := find("4 attempts have failed", "status=failing&task=late", func(all []site.Delivery) bool {
		return len(all) == 1 && all[0].Attempts == 4
	})
	want(&failing[0], "failing", 4, internal, silence, reset, notFound)

	// As dead letters: the first one, and those that have waited behind it.
	find("all are dead letters", "status=dead&task=dead", func(all []site.Delivery) bool {
		s.Enable(dead.Origin())
		return len(all) == len(history)
	})
	s.Kill()
	s.Run(s.Dir + "/Caddyfile")
	s.Awake()
	letters := s.Deliveries("task=dead")
	want(&letters[0], "dead", 6, internal, silence, reset, notFound, notFound, notFound)
	for i := range letters[1:] {
		want(&letters[1+i], "dead", 1, notFound)
	}
	id := letters[0].ID
	_, shown, _ := strings.Cut(command(s, 0, "show", id), "\n\n")
	var got []string
	for line := range strings.Lines(shown) {
		got = append(got, regexp.MustCompile(`\s{2,}`).Split(strings.TrimSpace(line), -1)[2])
	}
	lines := []string{"RESULT", "HTTP 500", silence, reset, "HTTP 404", "HTTP 404", "HTTP 404"}
	if diff := gocmp.Diff(lines, got); diff != "" {
		t.Errorf("show prints (-want +got):\n%s\n%s", diff, shown)
	}

	// Replayed: attempts are counted again, and those before are still listed.
	if got := command(s, 0, "replay", id); got != "1 to be sent again\n" {
		t.Errorf("a replay says %q", got)
	}
	replayed := find("the replay has failed", "id="+id, func(all []site.Delivery) bool {
		return len(all) == 1 && all[0].Attempts > 0
	})
	n := replayed[0].Attempts
	all := append([]string{internal, silence, reset}, slices.Repeat([]string{notFound}, 3+n)...)
	want(&replayed[0], "failing", n, all...)

	for _, to := range []*site.Sink{late, dead} {
		to.Answers(site.Always(site.Taken()))
		s.Enable(to.Origin())
	}
	late.WaitForChanges("/hook", history)
	find("the replay is delivered", "id="+id, func(all []site.Delivery) bool { return len(all) == 0 })
	idle(s)
	if got := s.Deliveries("task=late"); len(got) != 0 {
		t.Errorf("of what was delivered, there is %+v", got)
	}
}

// resultsOf returns how the attempts of a delivery that are kept have ended, oldest first.
func resultsOf(d *site.Delivery) (all []string) {
	for _, a := range d.Recent {
		all = append(all, cmp.Or(a.Error, http.StatusText(a.Status)))
	}
	return all
}
