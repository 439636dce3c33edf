// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/browser"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// unfoldedCard unfolds the card of an agent, and what the agent has sent. It is true when that is shown.
const unfoldedCard = `(() => {
	const card = document.querySelector(".agent-card");
	if (card) card.open = true;
	const original = card?.querySelector("details");
	if (original) original.open = true;
	return original?.querySelector("pre");
})()`

// TestConsoleShowsCards shows the card of an agent, which is asked for it once, however often the card is looked at.
func TestConsoleShowsCards(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/.well-known/agent.json" {
			http.NotFound(w, r)
			return
		}
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"name":"Planner","description":"plans <b>trips</b>","url":"http://%s/","version":"1.2",`+
			`"provider":{"organization":"Example","url":"https://example.org"},`+
			`"capabilities":{"streaming":true,"pushNotifications":true},"defaultInputModes":["text"],`+
			`"defaultOutputModes":["text"],"skills":[{"id":"plan","name":"Plan","description":"makes a plan",`+
			`"tags":["travel","time"]}],"more":"of its own"}`, r.Host)
	}))
	t.Cleanup(agent.Close)
	began := time.Now()
	s, console := consoleOf(t, agent.URL, "")
	p := browser.Start(t).Open(1200, 800)
	for range 3 {
		p.Go("about:blank")
		p.Go(console + "#/agents")
		p.Wait(`document.querySelector(".agent-card")`)
		p.Wait(unfoldedCard)
		for _, text := range []string{"Planner", "plans <b>trips</b>", "1.2", "Example", "streams, notifies webhooks",
			"makes a plan", "(travel, time)", `"more": "of its own"`} {
			p.WaitText(text)
		}
	}
	picture(t, p, "agents")
	if n := asked.Load(); n < 1 || n > 1+int64(time.Since(began)/time.Minute) { // it is asked again after a minute
		t.Errorf("the agent was asked %d times for its card", n)
	}
	site.WantGoodPage(t, p, console)

	for query, want := range map[string]string{
		"?partner=" + url.QueryEscape("http://none.example"): `the Partner \"http://none.example\" is not in the config`,
		"?agent=a": `there is no \"agent\"; use partner`,
	} {
		if status, body := s.Asked(http.MethodGet, "/aip/agents/card"+query, ""); status < 400 ||
			!strings.Contains(string(body), want) {
			t.Errorf("%s is answered with %d %s", query, status, body)
		}
	}
}

// TestConsoleWithoutCards: an agent shows no card, and the page says so. It counts the open streams.
func TestConsoleWithoutCards(t *testing.T) {
	t.Parallel()
	s, console := consoleOf(t, site.NewFakeAgent(t, nil).URL, "")
	p := browser.Start(t).Open(1200, 800)
	p.Go(console + "#/agents")
	p.WaitText("No stream is open.")
	leader := site.LeaderOf(t, s.URL())
	leader.Start("a", "hello")
	next, stop := iter.Pull2(leader.Follow(t.Context(), site.CommandCall(task.ReStream, "a"), func(error) {}))
	defer stop()
	if _, err, ok := next(); err != nil || !ok {
		t.Fatalf("the stream has no event: %v", err)
	}
	p.WaitText("1 stream is open.")
	stop()
	p.WaitText("No stream is open.")
	p.Click(".agent-card summary")
	p.WaitText("There is no card: the agent shows no card")
	site.WantGoodPage(t, p, console)
}
