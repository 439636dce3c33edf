// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/browser"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestConsoleShowsPolicy: the page of the policy has what its rules have decided, and what a quota has counted.
func TestConsoleShowsPolicy(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	s := serve(t, config{
		handle: `aip_gateway a2a/legacy ` + newFakeAgent(t, nil).url + ` {
		policy {
			allow starters command start
		}
		quota <b>daily</b> {
			starts 5/day
		}
	}`,
		otherSites: fmt.Sprintf("http://127.0.0.1:%d {\nbind 127.0.0.1\naip_console\n}\n", port),
	})
	console := fmt.Sprintf("http://127.0.0.1:%d/aip/console/", port)
	one := leaderOf(t, s.url())
	one.start("t1", "hello")
	one.refused(commandCall(task.Get, "t1"))
	p := browser.Start(t).Open(1200, 800)
	p.Go(console + "#/policy")
	for _, text := range []string{"starters", "(no rule)", "<b>daily</b>"} {
		p.WaitText(text)
	}
	p.Wait(`document.querySelector("[title^='` + string(certificates(t).Leader.AIC) + `']")`)
	one.start("t2", "hello")
	p.Wait(`[...document.querySelectorAll("td[data-label=Starts]")].some((cell) => cell.textContent === "2")`)
	good(t, p, console)
}
