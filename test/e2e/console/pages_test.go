// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	neturl "net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/browser"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestConsoleSteersTasks cancels a task, and ends another one as failed.
func TestConsoleSteersTasks(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t,
		func(w http.ResponseWriter, _ *http.Request, h site.Heard) { site.WriteTask(w, h, "working", "soon") })
	s, url := consoleOf(t, agent.URL, "cancel fail")
	leader := site.LeaderOf(t, s.URL())
	var starting sync.WaitGroup
	defer starting.Wait()
	for _, id := range []string{"a", "b", "c1", "c2"} {
		starting.Go(func() {
			if _, err := leader.Try(site.StartCall(id, "hello")); err != nil {
				t.Error(err)
			}
		})
	}
	p := browser.Start(t).Open(1200, 800)
	p.Go(url + "#/tasks")
	p.Wait(`document.querySelectorAll("tbody .badge[data-state=working]").length === 4`)
	for id, tc := range map[string][2]string{"a": {"Cancel the task", "canceled"}, "b": {"Fail the task", "failed"}} {
		p.Press("t")
		p.Click(`a[href*="task=` + id + `"]`)
		// No is no.
		p.ClickText("main button", tc[0])
		p.Wait(`document.querySelector("dialog[open] input") === document.activeElement`)
		p.Press("Escape")
		p.Wait(`!document.querySelector("dialog[open]")`)
		p.ClickText("main button", tc[0])
		p.Wait(`document.querySelector("dialog[open] input") === document.activeElement`)
		p.Type("because of a test")
		p.Press("Enter")
		p.Wait(`document.querySelector(".facts .badge").textContent === "` + tc[1] + `"`)
		p.Wait(`!document.querySelector("main .act")`)
		got := leader.Get(id)
		why := slices.ContainsFunc(got.Status.DataItems, func(item task.DataItem) bool {
			return strings.Contains(item.Text, "because of a test")
		})
		if string(got.Status.State) != tc[1] || !why {
			t.Errorf("the Leader gets %+v", got.Status)
		}
	}
	// All tasks of a filter.
	p.Go(url + "#/tasks?search=c")
	p.Wait(`document.querySelectorAll("tbody tr").length === 2`)
	p.ClickText("main .actions button", "Fail the tasks of this filter")
	p.WaitText("Fail 2 tasks?")
	p.Press("Escape")
	p.Wait(`!document.querySelector("dialog[open]")`)
	p.ClickText("main .actions button", "Cancel the tasks of this filter")
	p.WaitText("Cancel 2 tasks?")
	p.Type("because of a test")
	p.Press("Enter")
	p.WaitText("2 tasks canceled.")
	p.Wait(`document.querySelectorAll("tbody .badge[data-state=canceled]").length === 2`)
	p.ClickText("main .actions button", "Cancel the tasks of this filter")
	p.WaitText("No task of the filter is under way.")
	site.WantGoodPage(t, p, url)
}

// TestConsoleTriesAPartner starts a task as the operator, whom neither the Partner's list of Leaders nor the missing
// certificate keeps out, continues and completes it.
func TestConsoleTriesAPartner(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
		text := h.Params.Message.Parts[0].Text
		if text == "ask me" {
			site.WriteTask(w, h, "input-required", "what?")
			return
		}
		site.WriteTask(w, h, "completed", "you said "+text)
	})
	_, url := consoleOf(t, agent.URL+" {\nallow "+string(site.Certificates(t).Leader.AIC)+"\n}", "try")
	p := browser.Start(t).Open(1200, 800)
	p.Go(url + "#/tasks")
	p.Wait(`document.querySelector("nav a[data-page=try]")`)
	p.Press("y")
	p.Wait(`document.activeElement.name === "text"`)
	p.Type("ask me")
	p.Click("main button.act")
	p.Wait(`document.querySelector(".facts .badge")?.textContent === "awaiting-input"`)
	p.Wait(`document.querySelector(".answer").textContent === "what?"`)
	p.WaitText("operator:console")
	p.Eval(`document.querySelector(".try textarea").focus()`, nil)
	p.Type("<b>this</b>")
	p.ClickText(".try button", "Continue")
	p.Wait(`document.querySelector(".facts .badge").textContent === "awaiting-completion"`)
	p.Wait(`document.querySelector(".answer").textContent === "you said <b>this</b>"`)
	picture(t, p, "try")
	p.ClickText(".try button", "Complete")
	p.Wait(`document.querySelector(".facts .badge").textContent === "completed"`)
	p.Wait(`!document.querySelector(".try").checkVisibility()`)
	site.WantGoodPage(t, p, url)
}

// TestConsoleReplaysDeliveries shows dead letters, replays them, and disables an endpoint.
func TestConsoleReplaysDeliveries(t *testing.T) {
	t.Parallel()
	agent, to, port := site.NewFakeAgent(t, nil), site.NewSink(t), site.FreePort(t)
	s := site.Serve(t, site.Config{
		Store: "store memory", Notify: site.AllowHere + "attempts 1\nkeep_bodies",
		Handle:     "aip_gateway a2a/legacy " + agent.URL,
		OtherSites: fmt.Sprintf("http://127.0.0.1:%d {\nbind 127.0.0.1\naip_console {\nallow replay endpoints\n}\n}", port),
	})
	s.Awake()
	url := fmt.Sprintf("http://127.0.0.1:%d/aip/console/", port)
	p := browser.Start(t).Open(1200, 800)
	p.Go(url + "#/deliveries")
	p.WaitText("All notifications are delivered.")
	p.WaitText("No endpoint is in use")

	to.Answers(site.Always(site.Refusal(400)))
	leader := site.LeaderOf(t, s.URL())
	leader.SetHook(site.Hook{URL: to.Origin() + "/dead", Token: "t", TaskID: "a"})
	leader.Start("a", "hello")
	leader.Complete("a")
	n := len(s.Dead(len(leader.Get("a").StatusHistory)))
	p.Wait(fmt.Sprintf(`document.querySelector("tbody")?.rows.length === %d`, n))
	p.WaitText("HTTP 400")
	p.WaitText("0 % of " + fmt.Sprint(n) + " delivered in ")
	p.Wait(`document.querySelector(".urls a").textContent === "/d…d"`)
	p.Click("details.attempts summary")
	p.ClickText("details.attempts button", "Bodies")
	p.Wait(`document.querySelector(".bodies pre").textContent.startsWith('{"type":"task","id":"a"')`)
	p.Click("details.attempts summary")
	picture(t, p, "deliveries")
	looks(t, p, "deliveries")
	p.Eval(`document.querySelector("input[name=task]").focus()`, nil)
	p.Type("none")
	p.Press("Enter")
	p.WaitText("No delivery matches the filter.")
	p.Go("about:blank")
	p.Go(url + "#/deliveries")
	p.Wait(fmt.Sprintf(`document.querySelector("tbody")?.rows.length === %d`, n))
	p.Press("j", "Enter") // the task of the first one
	p.Wait(fmt.Sprintf(`document.querySelectorAll("#deliveries tbody tr").length === %d`, n))
	cells := func(want ...string) { // of the task's webhook, from its states on
		t.Helper()
		texts, err := json.Marshal(want)
		site.NoError(t, err)
		p.Wait(`JSON.stringify([...document.querySelectorAll("#webhooks td")].slice(2, 9).map((e) => e.textContent)) === ` +
			browser.Quote(string(texts)))
	}
	var of struct{ Task struct{ Last int } }
	name := neturl.Values{"partner": {agent.URL}, "leader": {leader.Sender}, "task": {"a"}}.Encode()
	s.AdminCall("GET", "/aip/tasks/events?"+name, "", &of)
	last := fmt.Sprint(of.Task.Last)
	p.Wait(`document.querySelector("#deliveries .attempts summary")?.textContent === "1"`)
	p.Click("#deliveries .attempts summary")
	p.Wait(`/ for [0-9.]+ m?s: HTTP 400 $/.test(document.querySelector("#deliveries .attempts li")?.textContent)`)
	p.Resize(1200, 1330)
	picture(t, p, "webhooks")
	p.Resize(1200, 800)
	cells("all", "dead", last, "0", fmt.Sprint(n), "0", "HTTP 400 the receiver answered with status 400")

	to.Answers(site.Always(site.Taken()))
	p.Press("d")
	p.Wait(`document.querySelector("h1").textContent === "Deliveries"`)
	p.ClickText("main td button", "Replay")
	s.Dead(n - 1)
	p.Click("main .actions button")
	p.WaitText(fmt.Sprintf("Replay %d dead letters?", n-1))
	p.Click("dialog[open] button[type=submit]")
	p.WaitText("All notifications are delivered.")
	s.Dead(0)
	p.Go(url + "#/task?" + name)
	cells("all", "delivered", last, "0", "0", "0", "HTTP 200 ")
	p.Press("d")
	p.Wait(`document.querySelector("h1").textContent === "Deliveries"`)
	p.ClickText("td button", "Disable")
	p.Wait(`[...document.querySelectorAll("td button")].some((b) => b.textContent === "Enable")`)
	if e := s.Endpoints(); len(e) != 1 || e[0].State != "disabled" {
		t.Errorf("the endpoints are %+v", e)
	}
	site.WantGoodPage(t, p, url)
}

// TestConsoleLooks opens all pages in light and dark, on a narrow screen, and by the keyboard.
func TestConsoleLooks(t *testing.T) {
	t.Parallel()
	s, url := consoleOf(t, site.AskingAgent(t).URL, "")
	site.LeaderOf(t, s.URL()).Start("a", "ask me")
	p := browser.Start(t).Open(1200, 800)
	p.Prefer("light")
	p.Go(url + "#/tasks")
	p.WaitText("awaiting-input")
	ground := func() (color string) {
		p.Eval(`getComputedStyle(document.documentElement).backgroundColor`, &color)
		return color
	}
	light := ground()
	p.Prefer("dark")
	dark := ground()
	if light == dark {
		t.Errorf("the page is %s in light and dark", light)
	}
	p.Press("l")
	if ground() != light {
		t.Error("the switch to light does not win over the system")
	}
	p.Press("l")
	p.Prefer("light")
	p.Go("about:blank")
	p.Go(url + "#/tasks")
	p.WaitText("awaiting-input")
	if ground() != dark {
		t.Error("the choice does not last")
	}
	p.Press("l")
	if ground() != light {
		t.Error("the third choice is not the system's")
	}

	// Contrast: all texts of a page, against what is behind them, have 4.5:1 at least (WCAG AA).
	contrast := `(() => {
		const parse = (c) => c.match(/[\d.]+/g).map(Number);
		const luminance = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
			.reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
		const bad = [];
		for (const e of document.querySelectorAll("body *")) {
			if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility()
				|| e.disabled || e.closest("noscript")) continue;
			let behind = e;
			while (behind && parse(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
			const one = luminance(parse(getComputedStyle(e).color));
			const two = luminance(parse(getComputedStyle(behind ?? document.documentElement).backgroundColor));
			if ((Math.max(one, two) + .05) / (Math.min(one, two) + .05) < 4.5) bad.push(e.outerHTML);
		}
		return bad;
	})()`
	for _, scheme := range []string{"light", "dark"} {
		p.Prefer(scheme)
		for key, title := range map[string]string{
			"t": "Tasks", "s": "Streams", "d": "Deliveries", "a": "Agents", "g": "Groups",
		} {
			p.Resize(1200, 800)
			p.Press(key)
			p.Wait(`document.querySelector("h1").textContent === "` + title + `"`)
			p.Wait(`document.querySelector("nav a[aria-current=page]").textContent === "` + title + `"`)
			p.Wait(`document.querySelector("main .message, main .card, main tbody tr")`)
			var bad []string
			p.Eval(contrast, &bad)
			for _, element := range bad {
				t.Errorf("%s, %s: too little contrast: %s", title, scheme, element)
			}
			for _, problem := range p.Inaccessible() {
				t.Errorf("%s, %s: %s", title, scheme, problem)
			}
			p.Resize(360, 740)
			var over int
			p.Eval(`document.documentElement.scrollWidth - document.documentElement.clientWidth`, &over)
			if over > 0 {
				t.Errorf("%s is %d pixels wider than a narrow screen", title, over)
			}
			if title == "Tasks" && scheme == "dark" {
				picture(t, p, "narrow")
			}
		}
	}

	// By the keyboard alone, the focus is always seen.
	p.Resize(1200, 800)
	p.Go("about:blank")
	p.Go(url + "#/tasks")
	p.WaitText("awaiting-input")
	p.Press("Tab")
	p.Wait(`document.activeElement.id === "skip" && document.activeElement.getBoundingClientRect().left >= 0`)
	p.Press("Enter")
	p.Wait(`document.activeElement.id === "main" && document.querySelector("h1").textContent === "Tasks"`)
	var outlines []string
	for range 20 {
		p.Press("Tab")
		var outline string
		p.Eval(`document.activeElement === document.body ? ""
			: getComputedStyle(document.activeElement).outlineStyle`, &outline)
		outlines = append(outlines, outline)
	}
	for _, outline := range outlines {
		if outline == "none" {
			t.Errorf("an element with the focus has no outline: %q", outlines)
			break
		}
	}
	p.Eval(`document.activeElement.blur()`, nil)
	p.Press("?")
	p.WaitText("the next row")
	p.Press("Escape")
	p.Wait(`!document.querySelector("dialog[open]")`)

	// A gateway that is gone, and is there again.
	p.Press("t")
	p.WaitText("awaiting-input")
	s.Kill()
	p.WaitText("The gateway does not answer.")
	p.WaitText("not connected")
	s.Run(s.Dir + "/Caddyfile")
	p.Wait(`document.querySelector("main .error") === null`)
	site.WantGoodPage(t, p, url, "net::ERR_") // of requests while the gateway was gone
}

// TestConsoleOfManyTasks: with 10,000 tasks, the page holds as much as with 100, and asks as seldom.
func TestConsoleOfManyTasks(t *testing.T) {
	t.Parallel()
	agent, port := site.NewFakeAgent(t, nil), site.FreePort(t)
	s := site.Serve(t, site.Config{
		Store: "store memory", Handle: "aip_gateway a2a/legacy " + agent.URL + " {\nlimits {\ntasks_per_leader 20000\n}\n}",
		OtherSites: fmt.Sprintf("http://127.0.0.1:%d {\nbind 127.0.0.1\naip_console\n}", port),
	})
	s.Awake()
	url := fmt.Sprintf("http://127.0.0.1:%d/aip/console/", port)
	leader := site.LeaderOf(t, s.URL())
	const tasks, at = 10_000, 8
	var starting sync.WaitGroup
	for i := range at {
		starting.Go(func() {
			for n := i; n < tasks; n += at {
				if _, err := leader.Try(site.StartCall(fmt.Sprintf("t%05d", n), "hello")); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	starting.Wait()

	p := browser.Start(t).Open(1200, 800)
	p.Go(url + "#/tasks")
	p.Wait(`document.querySelectorAll("tbody tr").length === 100`)
	p.Eval(`void new PerformanceObserver((list) => (window.longest = Math.max(window.longest ?? 0,
		...list.getEntries().map((e) => e.duration)))).observe({type: "longtask", buffered: true})`, nil)
	count := func() (nodes int) {
		p.Eval(`document.querySelectorAll("*").length`, &nodes)
		return nodes
	}
	names := func() (names []string) {
		p.Eval(`[...document.querySelectorAll("tbody a[data-row]")].map((a) => a.textContent)`, &names)
		return names
	}
	first, asked := count(), len(p.Requests())
	begin := names()
	seen := map[string]bool{}
	const turned = 20
	for page := range turned + 1 {
		shown := names()
		for _, name := range shown {
			seen[name] = true
		}
		if page < turned {
			p.Press("n")
			p.Wait(`document.querySelectorAll("tbody tr").length === 100 &&
				document.querySelector("tbody a").textContent !== ` + browser.Quote(shown[0]))
		}
	}
	if len(seen) != (turned+1)*100 {
		t.Errorf("%d pages have %d tasks", turned+1, len(seen))
	}
	if nodes := count(); nodes > first+50 || nodes > 2500 {
		t.Errorf("the page has %d elements, %d at first", nodes, first)
	}
	// For each page: the list, the counts, and the stream of changes.
	if n := len(p.Requests()) - asked; n > 3*turned {
		t.Errorf("%d pages took %d requests", turned, n)
	}
	var longest float64
	p.Eval(`window.longest ?? 0`, &longest)
	t.Logf("the longest task of the page took %.0f ms; it has %d elements", longest, first)

	// Tasks that change while the page is shown cost a bounded number of requests.
	p.Press("p")
	p.Wait(`document.querySelector("tbody a")?.textContent === ` + browser.Quote(begin[0]))
	asked = len(p.Requests())
	begun := time.Now()
	for n := range 500 {
		leader.Complete(fmt.Sprintf("t%05d", n))
	}
	p.Wait(`[...document.querySelectorAll("tbody .badge")].every((b) => b.textContent === "completed")`)
	// A page is loaded again after 300 ms at the earliest, by two requests.
	took := time.Since(begun)
	if n := len(p.Requests()) - asked; n > max(100, 2*int(took/(300*time.Millisecond))) {
		t.Errorf("500 changes took %d requests in %v", n, took)
	}
	site.WantGoodPage(t, p, url)
}
