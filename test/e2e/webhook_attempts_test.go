// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

// attempt is an attempt to deliver a notification that failed, as the admin API shows it.
type attempt struct {
	At       time.Time `json:"at"`
	Duration int       `json:"duration_ms"`
	Status   int       `json:"status"`
	Error    string    `json:"error"`
}

// results returns how the attempts of a delivery that are kept have ended, oldest first.
func (d *delivery) results() (all []string) {
	for _, a := range d.Recent {
		all = append(all, cmp.Or(a.Error, http.StatusText(a.Status)))
	}
	return all
}

// inTurn gives one answer after the other, and then the last one for ever.
func inTurn(all ...response) func(*notice) response {
	return func(*notice) response {
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
	agent, late, dead := newFakeAgent(t, nil), newSink(t), newSink(t)
	s := serve(t, config{notify: here + "timeout 10s\nattempts 6", handle: "aip_gateway a2a/legacy " + agent.url})
	leader := leaderOf(t, s.url())
	late.answers(inTurn(refusal(500), hangs(), resets(), refusal(404)))
	dead.answers(inTurn(refusal(500), hangs(), resets(), refusal(404)))
	history := begin(leader, "late", late.origin()+"/hook")
	begin(leader, "dead", dead.origin()+"/hook")
	const internal, notFound = "Internal Server Error", "Not Found"
	const silence, reset = "the receiver did not answer within 10s", "the connection was closed without an answer"

	find := func(what, query string, ok func([]delivery) bool) (all []delivery) {
		t.Helper()
		eventually(t, what, func() bool {
			all = s.deliveries(query)
			return ok(all)
		})
		return all
	}
	want := func(d *delivery, status string, attempts int, results ...string) {
		t.Helper()
		if diff := gocmp.Diff(results, d.results()); diff != "" || d.Status != status || d.Attempts != attempts {
			t.Errorf("%+v\n(-want +got):\n%s", d, diff)
		}
	}

	// While it fails. The next attempt is due 15 s later.
	failing := find("4 attempts have failed", "status=failing&task=late", func(all []delivery) bool {
		return len(all) == 1 && all[0].Attempts == 4
	})
	want(&failing[0], "failing", 4, internal, silence, reset, notFound)

	// As dead letters: the first one, and those that have waited behind it.
	find("all are dead letters", "status=dead&task=dead", func(all []delivery) bool {
		s.enable(dead.origin())
		return len(all) == len(history)
	})
	s.kill()
	s.run(s.dir + "/Caddyfile")
	s.awake()
	letters := s.deliveries("task=dead")
	want(&letters[0], "dead", 6, internal, silence, reset, notFound, notFound, notFound)
	for i := range letters[1:] {
		want(&letters[1+i], "dead", 1, notFound)
	}
	id := letters[0].ID
	_, shown, _ := strings.Cut(s.aip(0, "show", id), "\n\n")
	var got []string
	for line := range strings.Lines(shown) {
		got = append(got, regexp.MustCompile(`\s{2,}`).Split(strings.TrimSpace(line), -1)[2])
	}
	lines := []string{"RESULT", "HTTP 500", silence, reset, "HTTP 404", "HTTP 404", "HTTP 404"}
	if diff := gocmp.Diff(lines, got); diff != "" {
		t.Errorf("show prints (-want +got):\n%s\n%s", diff, shown)
	}

	// Replayed: attempts are counted again, and those before are still listed.
	if got := s.aip(0, "replay", id); got != "1 to be sent again\n" {
		t.Errorf("a replay says %q", got)
	}
	replayed := find("the replay has failed", "id="+id, func(all []delivery) bool {
		return len(all) == 1 && all[0].Attempts > 0
	})
	n := replayed[0].Attempts
	all := append([]string{internal, silence, reset}, slices.Repeat([]string{notFound}, 3+n)...)
	want(&replayed[0], "failing", n, all...)

	for _, to := range []*sink{late, dead} {
		to.answers(always(taken()))
		s.enable(to.origin())
	}
	late.waitForChanges("/hook", history)
	find("the replay is delivered", "id="+id, func(all []delivery) bool { return len(all) == 0 })
	s.idle()
	if got := s.deliveries("task=late"); len(got) != 0 {
		t.Errorf("of what was delivered, there is %+v", got)
	}
}
