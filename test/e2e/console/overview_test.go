// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/browser"
	"github.com/aip-gateway/aip-gateway/internal/freeport"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// looks demands that axe-core finds nothing worse than minor on what a page shows, light, dark and on a narrow screen,
// where it must not be wider than the screen. If AIP_SCREENSHOTS is a directory, it writes a picture of each.
func looks(t *testing.T, p *browser.Page, name string) {
	t.Helper()
	for _, look := range []struct {
		name, scheme  string
		width, height int
	}{{"light", "light", 1440, 900}, {"dark", "dark", 1440, 900}, {"narrow", "light", 390, 844}} {
		p.Prefer(look.scheme)
		p.Resize(look.width, look.height)
		for _, problem := range p.Inaccessible() {
			t.Errorf("%s, %s: %s", name, look.name, problem)
		}
		var over int
		p.Eval(`document.documentElement.scrollWidth - document.documentElement.clientWidth`, &over)
		if over > 0 {
			t.Errorf("%s, %s: the page is %d pixels wider than the screen", name, look.name, over)
		}
		if dir := os.Getenv("AIP_SCREENSHOTS"); dir != "" {
			var height int
			p.Eval(`document.documentElement.scrollHeight`, &height)
			p.Resize(look.width, height)
			site.NoError(t, os.MkdirAll(dir, 0o755),
				os.WriteFile(filepath.Join(dir, name+"-"+look.name+".png"), p.Screenshot(), 0o644))
		}
	}
	p.Prefer("light")
	p.Resize(1440, 900)
}

// TestConsoleOverview: the first page shows what is counted as the metrics have it, also after a reload, and each
// number leads to its list.
func TestConsoleOverview(t *testing.T) {
	t.Parallel()
	const secret = "credential-of-the-agent-5d81"
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
		state := "completed"
		for _, s := range []string{"input-required", "failed"} {
			if strings.Contains(string(h.Body), "be "+s) {
				state = s
			}
		}
		site.WriteTask(w, h, state, "the answer")
	})
	port := site.FreePort(t)
	c := site.Config{
		Handle: fmt.Sprintf(`handle_path /planner/* {
			aip_gateway a2a/legacy %s {
				name planner
				agent {
					header_up X-Key %s
				}
			}
		}
		handle_path /gone/* {
			aip_gateway a2a/legacy http://127.0.0.1:%d {
				name gone
				agent {
					retry_for 0
				}
			}
		}`, agent.URL, secret, freeport.Closed(t)),
		OtherSites: fmt.Sprintf("http://127.0.0.1:%d {\nbind 127.0.0.1\naip_console\n}\n", port),
	}
	s := site.Serve(t, c)
	s.Awake()
	url := fmt.Sprintf("http://127.0.0.1:%d/aip/console/", port)
	leader, gone := site.LeaderOf(t, s.URL()+"/planner"), site.LeaderOf(t, s.URL()+"/gone")
	leader.Start("done", "hello")
	leader.Complete("done")
	leader.Start("asks", "be input-required")
	leader.Start("fails", "be failed")
	if _, err := leader.Try(site.CommandCall("get", "nothing")); err == nil {
		t.Error("a task that does not exist was found")
	}
	gone.Start("unheard", "hello")

	o := overviewOf(s, "")
	if o.Calls != counted(s, "aip_calls_total") || o.Calls < 6 || o.Errors != 1 || o.Failed != 2 || o.Rest.Count < 3 ||
		o.Rest.P50 <= 0 || o.Rest.P99 < o.Rest.P50 || len(o.Agents) != 2 {
		t.Errorf("the overview is %+v", o)
	}
	if p := overviewOf(s, "?partner=planner"); len(p.Agents) != 1 || p.Calls+o.Agents[0].Calls != o.Calls {
		t.Errorf("that of one agent is %+v", p)
	}
	s.Reload(c)
	if after := overviewOf(s, ""); after.Calls != o.Calls || after.Failed != o.Failed || after.Rest != o.Rest {
		t.Errorf("after a reload it is %+v, before it was %+v", after, o)
	}
	if status, body := s.Asked(http.MethodGet, "/aip/overview?partner=none", ""); status < 400 ||
		!strings.Contains(string(body), "is not in the configuration") {
		t.Errorf("an unknown Partner is answered with %d %s", status, body)
	}

	p := browser.Start(t).Open(1440, 900)
	p.Go(url)
	p.Wait(`document.querySelector("h1").textContent === "Overview"`)
	figure := func(title, path string) string {
		return `[...document.querySelectorAll(".figure")].find((e) => e.querySelector("h2").textContent === "` + title +
			`")?.querySelector("` + path + `")`
	}
	p.Wait(fmt.Sprintf(`%s.textContent === "%d"`, figure("Calls", "a"), o.Calls))
	p.Wait(figure("Failed tasks", "a") + `.textContent === "2"`)
	p.Wait(figure("Tasks that wait for their Leader", "a") + `.textContent === "1 awaiting-input"`)
	p.Wait(figure("Open streams", "a") + `.textContent === "0"`)
	p.Wait(`[...document.querySelectorAll(".figure")].every((e) => e.querySelector(".numbers a[href^='#/']"))`)
	p.WaitText("unheard") // among the last failures
	p.WaitText("fails")
	p.Wait(`[...document.querySelectorAll("table")][0].rows.length === 3`)
	p.Wait(`document.querySelector("td[data-label=Health] .badge[data-state=down]")`)
	var weight struct{ Bytes, Shown float64 }
	p.Eval(`(() => {
		const all = [...performance.getEntriesByType("resource"), ...performance.getEntriesByType("navigation")];
		return {bytes: all.reduce((sum, e) => sum + e.transferSize, 0),
			shown: performance.getEntriesByName("first-contentful-paint")[0]?.startTime} })()`, &weight)
	t.Logf("the first page is shown after %.0f ms, with %.0f bytes", weight.Shown, weight.Bytes)
	if weight.Bytes > 150<<10 {
		t.Errorf("the first page takes %.0f bytes", weight.Bytes)
	}
	looks(t, p, "overview")

	// The numbers change, and the element with the focus stays.
	p.Eval(figure("Calls", "a")+`.focus()`, nil)
	leader.Start("again", "be failed")
	p.Wait(figure("Failed tasks", "a") + `.textContent === "3"`)
	p.Wait(`document.activeElement === ` + figure("Calls", "a"))
	p.Eval(figure("Failed tasks", "a")+`.click()`, nil)
	p.Wait(`document.querySelector("h1").textContent === "Tasks" && document.querySelectorAll("tbody tr").length === 3`)

	// The page of an agent.
	p.Press("v")
	p.ClickText("td a", "planner")
	p.Wait(`document.querySelector("h1").textContent === "planner up"`)
	p.Wait(`document.querySelector("nav a[aria-current=page]").textContent === "Agents"`)
	p.WaitText("a2a/legacy")
	p.Wait(figure("Failed tasks", "a") + `?.textContent === "2"`)
	p.Wait(`[...document.querySelectorAll("td")].some((e) => e.textContent === "agent.header_up.X-Key")`)
	p.WaitText("*** (secret)")
	if strings.Contains(p.Text(), secret) {
		t.Error("the page shows a secret")
	}
	p.Click(".agent-card summary")
	p.WaitText("There is no card")
	looks(t, p, "agent")
	p.ClickText(".links a", "Its tasks")
	p.Wait(`document.querySelector("h1").textContent === "Tasks" && document.querySelectorAll("tbody tr").length === 4`)
	p.Eval(`void (location.hash = "#/agent?partner=none")`, nil)
	p.WaitText(`the Partner "none" is not in the configuration`)
	if os.Getenv("AIP_PICTURES") != "" {
		for i := range 100 {
			leader.Start(fmt.Sprintf("trip-%d", i), "hello")
		}
		p.Go(url + "#/overview")
		p.WaitText("awaiting-completion")
		picture(t, p, "overview")
	}
	p.Eval(`void document.querySelector("main").append(document.createElement("button"))`, nil)
	if len(p.Inaccessible()) == 0 {
		t.Error("a button without a name is found accessible")
	}
	site.WantGoodPage(t, p, url, "409")
}

// overview is what the admin API says that was counted.
type overview struct {
	Calls  uint64
	Errors uint64
	Failed uint64 `json:"failed_tasks"`
	Rest   struct {
		Count    uint64
		P50, P99 float64
	}
	Agents []struct {
		Name  string
		Calls uint64
	}
}

// overviewOf returns the admin API's overview.
func overviewOf(s *site.Site, query string) (o overview) {
	s.T.Helper()
	s.AdminCall(http.MethodGet, "/aip/overview"+query, "", &o)
	return o
}

// counted returns the sum of the values of a metric.
func counted(s *site.Site, metric string) (sum uint64) {
	s.T.Helper()
	_, text := s.Asked(http.MethodGet, "/metrics", "")
	for _, m := range regexp.MustCompile(`(?m)^`+metric+`(?:\{.*\})? ([0-9]+)$`).FindAllSubmatch(text, -1) {
		n, err := strconv.ParseUint(string(m[1]), 10, 64)
		site.NoError(s.T, err)
		sum += n
	}
	return sum
}
