// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/browser"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// showsResults is an agent whose answer has an item of each kind, with hostile texts in it, and which streams 500
// pieces of a text where its caller wants a stream.
func showsResults(t *testing.T) *site.FakeAgent {
	const hostile = `<img src=x onerror=alert(1)>`
	many := make([]int, 250)
	return site.NewFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
		if h.Method == "tasks/sendSubscribe" {
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range 500 {
				fmt.Fprintf(w, `data: {"jsonrpc":"2.0","id":%s,"result":{"id":%q,"artifact":{"name":"story","index":0,`+
					`"append":%t,"parts":[{"type":"text","text":"w%d "}]}}}`+"\n\n", h.ID, h.Params.ID, i > 0, i)
				w.(http.Flusher).Flush()
			}
			fmt.Fprintf(w, `data: {"jsonrpc":"2.0","id":%s,"result":{"id":%q,"final":true,"status":`+
				`{"state":"completed","timestamp":"2026-01-02T03:04:05Z"}}}`+"\n\n", h.ID, h.Params.ID)
			return
		}
		file := func(name, mime string, members map[string]any) map[string]any {
			members["name"], members["mimeType"] = name, mime
			return map[string]any{"type": "file", "file": members}
		}
		coded := func(text string) map[string]any {
			return map[string]any{"bytes": base64.StdEncoding.EncodeToString([]byte(text))}
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": h.ID, "result": map[string]any{
			"id": h.Params.ID, "status": map[string]any{"state": "completed", "timestamp": "2026-01-02T03:04:05Z",
				"message": map[string]any{"role": "agent", "parts": []any{map[string]any{"type": "text", "text": hostile}}}},
			"artifacts": []any{
				map[string]any{"name": "plan", "index": 0, "parts": []any{
					map[string]any{"type": "text", "text": "# A plan\n\n**bold** " + hostile},
					map[string]any{"type": "data", "data": map[string]any{"trip": map[string]any{hostile: true}, "many": many}},
				}},
				map[string]any{"name": "files", "index": 1, "parts": []any{
					file("map.png", "image/png", map[string]any{"uri": "https://files.example/map.png"}),
					file("evil.png", "image/png", map[string]any{"uri": "javascript:alert(1)"}),
					file("notes.md", "text/markdown", coded("## Notes")),
					file("page.html", "text/html", coded("<script>alert(1)</script>")),
					file("table.json", "application/json", coded(`{"rows":[1,2,3]}`)),
				}},
			},
		}})
	})
}

// TestConsoleShowsATask opens the page of a task with a result of all kinds, and that of one with 500 events.
func TestConsoleShowsATask(t *testing.T) {
	t.Parallel()
	const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	agent, port := showsResults(t), site.FreePort(t)
	s := site.Serve(t, site.Config{
		Store:      "store memory\n\t\ttraces {\n\t\t\tlink https://traces.example.com/{trace_id}\n\t\t}",
		Handle:     "aip_gateway a2a/legacy " + agent.URL,
		OtherSites: fmt.Sprintf("http://127.0.0.1:%d {\nbind 127.0.0.1\naip_console\n}", port),
	})
	s.Awake()
	console := fmt.Sprintf("http://127.0.0.1:%d/aip/console/", port)
	leader := site.LeaderOf(t, s.URL())
	_, _ = leader.Post("/rpc", []byte(site.StartBody(leader.Sender, "plan")),
		"traceparent", "00-"+traceID+"-00f067aa0ba902b7-01")
	p := browser.Start(t).Open(1200, 900)
	show := func(id string) {
		q := url.Values{"partner": {agent.URL}, "leader": {leader.Sender}, "task": {id}}
		p.Go(console + "#/task?" + q.Encode())
		p.Wait(`document.querySelector("h1")?.textContent === "` + id + `" && document.querySelector(".product")`)
	}
	show("plan")
	p.Eval(watch, nil)
	for _, shown := range []string{ // expressions that hold
		`[...document.querySelectorAll(".product h3")].map((e) => e.textContent).join() === "plan,files"`,
		`document.querySelector(".said pre").textContent === "<img src=x onerror=alert(1)>"`,
		`document.querySelector(".product pre").textContent.startsWith("# A plan\n\n**bold** <img")`,
		// JSON is a tree: what is in a member is there when it is opened.
		`!document.querySelector(".tree").textContent.includes("onerror")`,
		// Links are opened by a click only; what is no URL of the web is none.
		`document.querySelector("a.outside[href='https://files.example/map.png']").rel === "noopener noreferrer"`,
		`document.querySelectorAll(".product a").length === 1`,
		`[...document.querySelectorAll(".file")].some((e) => e.textContent.startsWith("Image evil.png"))`,
		`document.querySelector(".product").parentElement.textContent.includes("## Notes")`,
		`document.querySelector(".product").parentElement.textContent.includes("<script>alert(1)</script>")`,
		`document.querySelector("a.outside[href='https://traces.example.com/` + traceID + `']")`,
		`document.querySelector(".facts a[href^='#/tasks?leader=']")`,
		`document.querySelector(".facts a[href*='session=']")`,
		`document.querySelector(".facts a[href^='#/agent?partner=']")`,
	} {
		p.Wait(shown)
	}
	p.Eval(`void document.querySelectorAll(".tree summary").forEach((e) => e.click())`, nil) // closes the first
	p.Eval(`void document.querySelectorAll(".tree > details").forEach((e) => e.open = true)`, nil)
	p.Eval(`void document.querySelectorAll(".tree > details > details").forEach((e) => e.open = true)`, nil)
	p.Wait(`document.querySelector(".tree .boolean")?.parentElement.textContent === "<img src=x onerror=alert(1)>: true"`)
	p.Wait(`document.querySelectorAll(".tree details details .leaf").length >= 101`)
	p.ClickText(".tree button", "100 more of 250")
	p.ClickText(".tree button", "50 more of 250")
	p.Wait(`document.querySelectorAll(".tree details details .leaf").length >= 251`)
	// A file that is saved is of no type that a browser opens.
	p.Eval(`void (URL.createObjectURL = (file) => (window.saved = file, "#"), URL.revokeObjectURL = () => {})`, nil)
	p.Eval(`void [...document.querySelectorAll(".file")].find((e) => e.textContent.includes("page.html"))
		.querySelector("button").click()`, nil)
	p.Wait(`window.saved?.type === "application/octet-stream" && saved.size === 25`)
	harmless(t, p, "the result")
	looks(t, p, "task")
	p.Resize(1200, 1500)
	picture(t, p, "result")
	p.Resize(1200, 900)

	// A task of more events than are read at once, and of several turns: each state that it has had is on the time line.
	o, _ := leader.Open(t, leader.Transports(t)["2"], site.StreamBody(leader.Sender, "start", "story", "tell", ""))
	o.Until("awaiting-completion")
	// More than one state lasts: else the two scales are the same.
	lasts := func(least time.Duration) {
		since := leader.Get("story").Status.ChangedAt
		site.Eventually(t, "the state has lasted "+least.String(), func() bool { return time.Since(since) >= least })
	}
	lasts(50 * time.Millisecond)
	leader.GoOn("story", "again")
	lasts(20 * time.Millisecond)
	leader.Complete("story")
	show("story")
	history := leader.Get("story").StatusHistory
	var times []string
	for _, state := range history {
		times = append(times, string(state.State)+" "+state.ChangedAt.UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	p.Wait(`[...document.querySelectorAll(".states li")].map((e) => e.querySelector(".badge").textContent + " "
		+ e.querySelector("time").dateTime).join() === ` + browser.Quote(strings.Join(times, ",")))
	p.Wait(`Number(document.querySelector(".events li:last-child").dataset.seq) > 500`)
	// It is linear, and says so; the other scale is not, and says that.
	linear := `(() => {
		const at = [...document.querySelectorAll(".states time")].map((e) => Date.parse(e.dateTime));
		return [...document.querySelectorAll(".bar")].every((bar, i) => i === at.length - 1 || Math.abs(
			parseFloat(bar.style.width) - (at[i + 1] - at[i]) / (at.at(-1) - at[0]) * 100) < 0.01);
	})()`
	p.Wait(linear + ` && document.querySelector(".scales").textContent.includes("Linear:")`)
	p.ClickText(".scales button", "Logarithmic")
	p.Wait(`!` + linear + ` && document.querySelector(".scales").textContent.includes("Logarithmic:")`)
	p.ClickText(".scales button", "Linear")
	p.Wait(linear)
	// A state has one colour, on the line and in its badge, and no other has it.
	for _, scheme := range []string{"light", "dark"} {
		p.Prefer(scheme)
		p.Wait(`(() => {
			const of = new Map([...document.querySelectorAll(".bar")].map((e) =>
				[e.dataset.state, getComputedStyle(e).backgroundColor]));
			return of.size === 4 && new Set(of.values()).size === 4 && [...document.querySelectorAll(".states .badge")]
				.every((e) => getComputedStyle(e).color === of.get(e.dataset.state));
		})()`)
	}
	// Each event has its time: relative to now, and absolute. A piece is known to have come after the event before it.
	p.Wait(`[...document.querySelectorAll(".events summary .when")].every((e) =>
		/ago|now/.test(e.textContent) && / \d\d:\d\d:\d\d\.\d{3}$/.test(e.querySelector(".moment").textContent)
		&& e.querySelector("time").title.includes(e.querySelector(".moment").textContent.trim().slice(-12)))`)
	p.ClickText("main button", "Show earlier events")
	p.ClickText("main button", "Show earlier events")
	p.Wait(`document.querySelector(".events li").dataset.seq === "1"`)
	p.Wait(`[...document.querySelectorAll(".events .when")]
		.filter((e) => e.textContent.startsWith("at most ")).length > 100`)
	// Its session's tasks, and no others, are one click away.
	p.ClickText(".facts a", "the session's tasks")
	p.Wait(`[...document.querySelectorAll("tbody a[data-row]")].map((e) => e.textContent).join() === "story"`)
	show("story")
	p.Resize(390, 800)
	var over int
	p.Eval(`document.documentElement.scrollWidth - document.documentElement.clientWidth`, &over)
	if over > 0 {
		t.Errorf("the page of a task is %d pixels wider than a narrow screen", over)
	}
	site.WantGoodPage(t, p, console, "NavigationEntryMarkedSkippable")
}
