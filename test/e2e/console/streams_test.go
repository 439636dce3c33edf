// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/browser"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestConsoleShowsStreams shows the open streams, on a page of their own and on that of their task, as they are opened,
// sent and closed.
func TestConsoleShowsStreams(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	s, console := consoleOf(t, "http://"+agent, "")
	p := browser.Start(t).Open(1200, 800)
	p.Go(console + "#/tasks")
	p.WaitText("No task yet.")
	p.Press("s")
	p.WaitText("No stream is open.")

	l := site.LeaderOf(t, s.URL())
	transports := l.Transports(t)
	for _, version := range []string{"1", "2", "3"} {
		o, _ := l.Open(t, transports[version], site.StreamBody(l.Sender, "start", "trip-"+version, "ask", ""))
		o.Until("awaiting-input")
	}
	again, _ := l.Open(t, transports["2"], site.StreamBody(l.Sender, "re-stream", "trip-2", "", ""))
	again.Until("awaiting-input")
	p.Wait(`document.querySelectorAll("tbody tr").length === 4`)
	cell := func(label string) string {
		return `document.querySelector("tbody tr:nth-child(2) [data-label='` + label + `']").textContent`
	}
	p.Wait(cell("Transport") + ` === "HTTP/2.0" && ` + cell("Behind") + ` === "0" && ` + cell("Call") + ` === "aip start"`)
	p.Wait(cell("Caller") + `.startsWith("127.0.0.1:")`)
	p.Wait(`document.querySelector("tbody tr:nth-child(2) [data-label=Leader] .copy").title.startsWith(` +
		browser.Quote(l.Sender) + `)`)
	var sent int
	p.Eval(`Number(`+cell("Events sent")+`)`, &sent)
	p.WaitText("4 streams on this page")
	picture(t, p, "streams")

	// A row stays the same element, with the focus, while its stream sends more.
	p.Press("j", "j")
	p.Wait(`document.activeElement.textContent === "trip-2"`)
	l.GoOn("trip-2", "blue")
	p.Wait(fmt.Sprintf("%s > %d", cell("Events sent"), sent))
	p.Wait(`document.activeElement.textContent === "trip-2"`)

	// On the page of a task, only its own.
	p.Press("Enter")
	p.Wait(`document.querySelectorAll("#streams tbody tr").length === 2`)
	p.Wait(`[...document.querySelectorAll("#streams td[data-label=Call]")].map((e) => e.textContent).join() ===
		"aip start,aip re-stream"`)
	l.Complete("trip-2")
	p.WaitText("No caller follows the task by a stream now.")
	p.Wait(`document.querySelectorAll("#streams tbody tr").length === 0`)

	// The filter.
	p.Press("s")
	p.Wait(`document.querySelectorAll("tbody tr").length === 2`)
	p.Press("/")
	p.Type("trip-3")
	p.Press("Enter")
	p.Wait(`document.querySelectorAll("tbody tr").length === 1 && location.hash.includes("task=trip-3")`)
	p.Eval(`void (location.hash = "#/streams?task=none")`, nil)
	p.WaitText("No open stream matches the filter.")

	// The page of agents links the list.
	p.Press("a")
	p.WaitText("2 streams are open.")
	p.ClickText("main a", "2 streams")
	p.Wait(`document.querySelectorAll("tbody tr").length === 2`)
	s.Kill()
	p.WaitText("The gateway does not answer.")
	s.Run(s.Dir + "/Caddyfile")
	p.WaitText("No stream is open.")
	site.WantGoodPage(t, p, console, "net::ERR_") // of requests while the gateway was gone
}
