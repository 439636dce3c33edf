// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/browser"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// hostile are texts that have made scripts run in careless pages.
var hostile = []string{
	`<script>alert(1)</script>`,
	`"><script src=https://evil.example/x.js></script>`,
	`<img src=x onerror=alert(1)>`,
	`<img src="https://evil.example/pixel.png">`,
	`<svg onload=alert(1)>`,
	`<svg><script>alert(1)</script></svg>`,
	`<iframe srcdoc="<script>parent.alert(1)</script>"></iframe>`,
	`<iframe src="javascript:alert(1)"></iframe>`,
	`<a href="javascript:alert(1)">click</a>`,
	`javascript:alert(1)//`,
	`data:text/html,<script>alert(1)</script>`,
	`" onmouseover="alert(1)" autofocus onfocus="alert(1)`,
	`' onfocus='alert(1)' autofocus='`,
	`</title><script>alert(1)</script>`,
	`</pre></details><script>alert(1)</script>`,
	`<style>@import "https://evil.example/x.css";</style>`,
	`<link rel=stylesheet href=https://evil.example/x.css>`,
	`<meta http-equiv=refresh content="0;url=https://evil.example/">`,
	`<base href="https://evil.example/">`,
	`<form action=https://evil.example/><button>go</button></form>`,
	`<object data="https://evil.example/x.swf"></object>`,
	`<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph></table></mtext></math>`,
	`<template><script>alert(1)</script></template>`,
	`<video><source onerror="alert(1)"></video>`,
	`<body onload=alert(1)>`,
	`<input autofocus onfocus=alert(1)>`,
	`{{constructor.constructor('alert(1)')()}}`,
	"${alert(1)}`-alert(1)-`",
	`__proto__`,
	`%3Cscript%3Ealert(1)%3C/script%3E`,
	`#/tasks?state=<script>alert(1)</script>`,
	"\u202egnp.exe\u2066 <b>bold</b>",
}

// watch has a page record what its policy forbids.
const watch = `window.violations = []; addEventListener("securitypolicyviolation",
	(e) => violations.push(e.violatedDirective + " " + e.blockedURI))`

// harmless demands that no text has become an element, or has made the page do anything.
func harmless(t *testing.T, p *browser.Page, where string) {
	t.Helper()
	var found []string
	p.Eval(`[...violations,
		...[...document.querySelectorAll("script, iframe, object, embed, base, style, video, img, svg, math, template,"
			+ " meta[http-equiv], body > form")].filter((e) => !e.matches("script[src='console.js'], svg.chart"))
			.map((e) => e.outerHTML),
		...[...document.querySelectorAll("a")].filter((a) => !a.getAttribute("href").startsWith("#")
			&& !(a.matches(".outside[target=_blank][rel='noopener noreferrer']") && /^https?:/.test(a.protocol)))
			.map((a) => a.outerHTML),
		...[...document.querySelectorAll("*")].flatMap((e) => e.getAttributeNames()).filter((n) => n.startsWith("on")),
	]`, &found)
	for _, bad := range found {
		t.Errorf("%s: %s", where, bad)
	}
}

// TestConsoleWithHostileTexts has an agent and a Leader send texts that are made to attack, in every field that they
// have, and opens all pages on them.
func TestConsoleWithHostileTexts(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
		text := h.Params.Message.Parts[0].Text
		part := func() []any {
			return []any{
				map[string]any{"type": "text", "text": text, "metadata": map[string]any{text: text}},
				map[string]any{"type": "file", "file": map[string]any{"name": text, "mimeType": text, "bytes": "aGk="}},
				map[string]any{"type": "file", "file": map[string]any{"name": text, "uri": "https://evil.example/" + text}},
				map[string]any{"type": "data", "data": map[string]any{text: text}},
			}
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": h.ID, "result": map[string]any{
			"id": h.Params.ID, "metadata": map[string]any{text: text},
			"status": map[string]any{"state": "input-required", "timestamp": "2026-01-02T03:04:05Z",
				"message": map[string]any{"role": "agent", "parts": part()}},
			"artifacts": []any{map[string]any{"name": text, "description": text, "index": 0, "parts": part()}},
		}})
	})
	s, console := consoleOf(t, agent.URL, "cancel")
	leader := site.LeaderOf(t, s.URL())
	for _, text := range hostile {
		call := site.StartCall(text, text)
		call.Message.SessionID = text
		leader.Send(call)
	}

	p := browser.Start(t).Open(1200, 800)
	p.Go(console + "#/tasks")
	p.WaitText("awaiting-input")
	p.Eval(watch, nil)
	p.Wait(fmt.Sprintf(`document.querySelectorAll("tbody tr").length === %d`, len(hostile)))
	harmless(t, p, "the list")
	for _, text := range hostile {
		q := url.Values{"partner": {agent.URL}, "leader": {leader.Sender}, "task": {text}}
		p.Eval(`void (location.hash = `+browser.Quote("#/task?"+q.Encode())+`)`, nil)
		shown := strings.NewReplacer("\u202e", "\ufffd", "\u2066", "\ufffd").Replace(text)
		p.Wait(`document.querySelector("h1").textContent === ` + browser.Quote(shown) +
			` && document.querySelectorAll(".events li").length >= 3`)
		p.Eval(`void document.querySelectorAll("details").forEach((d) => d.open = true)`, nil)
		p.Wait(`document.querySelectorAll("pre").length >= 4`)
		harmless(t, p, text)
		if text == hostile[0] {
			p.WaitText(text) // it is shown as it is
		}
	}

	// The other pages, with every text of the answers replaced.
	for i := range hostile {
		texts, _ := json.Marshal(append(append([]string{}, hostile[i:]...), hostile[:i]...)) // never fails
		p.Eval(`void (() => {
			const texts = `+string(texts)+`;
			let at = 0;
			const poison = (v) => typeof v === "string" ? texts[at++ % texts.length]
				: Array.isArray(v) ? v.map(poison)
				: v && typeof v === "object" ? Object.fromEntries(Object.entries(v).map(([k, w]) => [k, poison(w)])) : v;
			const answers = {groups: {groups: [{partner: "", leader: "", group: "", state: "", members: ["", ""], dialect: "",
					broker: "", vhost: "", node: "", leader_aic: "", since: "", joined: "", last_error: "", muted: true}]},
				ready: {status: "", streams: "", reasons: ["", ""], store: {driver: "", reason: ""},
					agents: [{partner: "", agent: "", dialect: "", state: "", answered: "", failed: "", reason: ""}]},
				deliveries: {deliveries: [{id: "", status: "", partner: "", leader: "", task: "", webhook: "", endpoint: "",
					event: 1, state: "", at: "", attempts: 1, next: "", last_status: 400, last_error: "",
					recent_attempts: [{at: "", duration_ms: 1, error: ""}]}]},
				endpoints: {endpoints: [{endpoint: "", state: "", until: ""}]},
				streams: {streams: [{partner: "", leader: "", task: "", number: 1, user_id: "", address: "", transport: "",
					dialect: "", command: "", since: "", events: 1, last: 1, behind: 1}]},
				overview: {missing: ["", ""], gateways: ["", ""], since: "", calls: 1, errors: 1, failed_tasks: 1,
					first_event: {count: 0}, rest: {count: 0}, now: {tasks: {working: 1}},
					agents: [{name: "", url: "", partner: "", agent: "", dialect: "", state: "", reason: "", answered: "",
					calls: 1, first_event: {count: 0}, rest: {count: 0}}]},
				tasks: {tasks: [{partner: "", leader: "", task: "", agent_name: "", state: "", since: "", reason: ""}]},
				settings: {settings: [{name: "", value: "", secret: true}]},
				webhooks: {webhooks: [{webhook: "", endpoint: "", states: ["", ""], status: "", reached: 1, pending: 1, dead: 1,
					attempts: 1, next: "", last_status: 400, last_error: "", disabled_reason: ""}]},
				card: {partner: "", changed: "", name: "", description: "", version: "", provider: "", streaming: true, push: true,
					interfaces: [{url: "", binding: "", version: ""}], skills: [{id: "", name: "", description: "", tags: ["", ""]}],
					card: {name: "", skills: [{"": ""}]}},
				show: {task: {partner: "", leader: "", task: "", session: "", state: "", since: "", first: 1, last: 0, bytes: 1,
						trace_id: ""}, trace_link: "", group: "",
					said: [{type: "text", text: "", mime_type: ""}, {type: "data", data: {"": ["", {}]}}],
					products: [{id: "", name: "", description: "", bytes: 1, cut: true, items: [{type: "", name: "", uri: "",
						bytes: "", mime_type: ""}, {type: "text", text: ""}]}],
					states: [{state: "", at: ""}], commands: [{command: "", at: ""}]},
				events: {task: {partner: "", leader: "", task: "", session: "", state: "", since: "", first: 1, last: 0, bytes: 1},
					events: []}};
			window.fetch = async (to) => new Response(JSON.stringify(
				poison(answers[String(to).split("?")[0].split("/").at(-1)] ?? {error: ""})));
		})()`, nil)
		for page, element := range map[string]string{
			"groups": ".card", "agents": ".card", "deliveries": "td", "streams": "td", "task": "#webhooks td",
			"overview": "td .badge", "agent": ".settings td",
		} {
			q := url.Values{"partner": {agent.URL}, "leader": {leader.Sender}, "task": {hostile[i]}} // of the page "task"
			p.Eval(`void (location.hash = `+browser.Quote("#/"+page+"?"+q.Encode())+`)`, nil)
			p.Wait(`document.title.toLowerCase().startsWith("` + page + `") && document.querySelector("` + element + `")`)
			if page == "agents" {
				p.Wait(unfoldedCard)
				p.Wait(`document.querySelectorAll(".agent-card dd").length >= 9`)
			}
			if page == "deliveries" || page == "task" {
				p.Wait(`document.querySelector("details.attempts summary")`)
				p.Click("details.attempts summary")
				p.Wait(`document.querySelector("details.attempts li")`)
			}
			if page == "task" {
				p.Wait(`document.querySelector("#streams td")`)
			}
			harmless(t, p, page)
		}
	}
	site.WantGoodPage(t, p, console, "NavigationEntryMarkedSkippable") // the test navigates without a click

	// The second net: where a mistake made HTML of a text, or ran one, the browser would refuse it.
	var refused []bool
	p.Eval(`(async () => {
		const tried = [];
		try { document.body.innerHTML = "<b>x</b>"; tried.push(false) } catch { tried.push(true) }
		const script = document.createElement("script");
		try { script.textContent = "window.ran = true"; document.body.append(script) } catch { /* refused even earlier */ }
		tried.push(!window.ran);
		const image = new Image();
		image.src = "https://evil.example/pixel.png";
		await new Promise((done) => image.addEventListener("error", done));
		tried.push(violations.some((v) => v.startsWith("img-src")));
		return tried;
	})()`, &refused)
	for i, ok := range refused {
		if !ok || len(refused) != 3 {
			t.Errorf("the policy of the page does not hold: %d of %v", i, refused)
		}
	}
}
