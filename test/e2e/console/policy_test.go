// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/browser"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestConsoleShowsPolicy: the page of the policy has what its rules have decided, and what a quota has counted.
func TestConsoleShowsPolicy(t *testing.T) {
	t.Parallel()
	site.WithinADay()
	port := site.FreePort(t)
	s := site.Serve(t, site.Config{
		Handle: `aip_gateway a2a/legacy ` + site.NewFakeAgent(t, nil).URL + ` {
		policy {
			allow starters command start
		}
		quota <b>daily</b> {
			starts 5/day
		}
	}`,
		OtherSites: fmt.Sprintf("http://127.0.0.1:%d {\nbind 127.0.0.1\naip_console\n}\n", port),
	})
	console := fmt.Sprintf("http://127.0.0.1:%d/aip/console/", port)
	one := site.LeaderOf(t, s.URL())
	one.Start("t1", "hello")
	one.Refused(site.CommandCall(task.Get, "t1"))
	p := browser.Start(t).Open(1200, 800)
	p.Go(console + "#/policy")
	for _, text := range []string{"starters", "(no rule)", "<b>daily</b>"} {
		p.WaitText(text)
	}
	p.Wait(`document.querySelector("[title^='` + string(site.Certificates(t).Leader.AIC) + `']")`)
	one.Start("t2", "hello")
	p.Wait(`[...document.querySelectorAll("td[data-label=Starts]")].some((cell) => cell.textContent === "2")`)
	site.WantGoodPage(t, p, console)
}
