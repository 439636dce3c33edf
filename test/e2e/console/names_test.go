// SPDX-License-Identifier: Apache-2.0

package console

import (
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/browser"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestNamesOfAgents proves that a Partner is shown by its name, and taken by it, by commands and in the console.
func TestNamesOfAgents(t *testing.T) {
	t.Parallel()
	aic := string(site.Certificates(t).Server.AIC)
	s, url := consoleOf(t, site.AskingAgent(t).URL+" {\nname travel-planner\naic "+aic+"\n}", "try")
	leader := site.LeaderOf(t, s.URL())
	id := "task-" + strings.Repeat("0123456789", 5)
	leader.Start(id, "hello")
	for _, args := range [][]string{{"list", "--partner", "travel-planner"}, {"show", id}} {
		if out := s.TasksCommand(0, args...); !strings.Contains(out, "travel-planner") {
			t.Errorf("aip tasks %s prints\n%s", strings.Join(args, " "), out)
		}
	}
	pki := site.Certificates(t)
	status, out, failed := s.Caddy("aip", "call", "travel-planner", "get", "--task", id, "--cert", pki.Leader.Cert,
		"--key", pki.Leader.Key, "--ca", pki.CA.Cert, "--address", s.AdminAddress())
	if status != 0 || !strings.Contains(out, id) {
		t.Errorf("a call by the name ends with %d: %s%s", status, out, failed)
	}

	p := browser.Start(t).Open(1440, 900)
	p.Go(url + "#/tasks")
	p.Wait(`document.querySelectorAll("tbody tr").length === 1`)
	p.Wait(`document.querySelector(".agent").textContent === "travel-planner"`)
	p.Wait(`document.querySelector(".agent").title === "` + aic + `"`)
	p.Wait(`document.querySelector("td .copy").title.startsWith("` + string(site.Certificates(t).Leader.AIC) + `")`)
	p.Wait(`document.querySelector("td .copy").textContent.includes("…")`)
	p.Wait(`[...document.querySelectorAll("td")].every((cell) => cell.clientHeight < 40)`)
	p.Click("td .copy")
	p.Wait(`document.querySelector("td .copy").dataset.copied === "true"`)
	p.Press("a")
	p.Wait(`document.querySelector("article h2").textContent.startsWith("travel-planner")`)
	p.Press("y")
	p.Wait(`document.querySelector("select[name=partner]").textContent === "travel-planner"`)
	site.WantGoodPage(t, p, url)
}

// TestNewestTasksFirst proves that what has changed last is on the first row of the console and of the list of the
// command, that the columns sort, and that the states are counted above the list.
func TestNewestTasksFirst(t *testing.T) {
	t.Parallel()
	s, url := consoleOf(t, site.AskingAgent(t).URL+" {\nname travel-planner\n}", "")
	leader := site.LeaderOf(t, s.URL())
	for _, id := range []string{"c", "a", "b"} {
		site.Outlast(leader.Start(id, "ask me").Status.ChangedAt)
	}
	p := browser.Start(t).Open(1440, 900)
	p.Go(url + "#/tasks")
	order := `[...document.querySelectorAll("tbody a")].map((a) => a.textContent).join("")`
	p.Wait(order + ` === "bac"`)
	leader.Cancel("c")
	p.Wait(order + ` === "cba"`) // what has just happened is on the first row
	p.Wait(`document.querySelector(".counts").textContent.replace(/\s+/g, " ").trim() === "awaiting-input 2 canceled 1"`)
	p.ClickText("th button", "Task")
	p.Wait(order + ` === "abc"`)
	p.ClickText("th button", "Task")
	p.Wait(order + ` === "cba" && document.querySelector("th").getAttribute("aria-sort") === "descending"`)
	p.Wait(`[...document.querySelectorAll("#known option")].some((o) => o.value === "travel-planner")`)
	p.Click(".counts a")
	p.Wait(order + ` === "ba"`)
	site.WantGoodPage(t, p, url)

	out := s.TasksCommand(0, "list", "--search", "travel", "--since", "1h")
	if c, b := strings.Index(out, "\nc "), strings.Index(out, "\nb "); c < 0 || b < c || !strings.Contains(out, "REASON") {
		t.Errorf("the list is\n%s", out)
	}
	out = s.TasksCommand(0, "list", "--state", "failed")
	if !strings.Contains(out, "Without this filter: 3, with state awaiting-input, canceled.") {
		t.Errorf("without a match the list says\n%s", out)
	}
	if out := s.TasksCommand(0, "list", "--sort", "name"); !strings.HasPrefix(strings.SplitN(out, "\n", 3)[1], "a ") {
		t.Errorf("the list by names is\n%s", out)
	}
}
