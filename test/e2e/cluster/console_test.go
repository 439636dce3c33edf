// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/browser"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestClusterConsole: the console of one of several gateways shows which one has a task, and what does not answer. It
// asks no other one merely because it is opened.
func TestClusterConsole(t *testing.T) {
	t.Parallel()
	_, address := site.SampleAgent(t)
	// A gateway that is silent for longer than its lease is gone, and the page may be slow.
	handle, settings := "aip_gateway a2a/legacy http://"+address+" {\nagent {\nresend after 40s\n}\n}", "lease 20s"
	c := site.NewCluster(t, 2, handle, settings)
	port := site.FreePort(t)
	s := c.Gateways[0]
	s.Stop(t)
	with := c.Config(0, handle, settings)
	with.OtherSites = fmt.Sprintf("http://127.0.0.1:%d {\nbind 127.0.0.1\naip_console\n}", port)
	s.Start(with)
	c.AllOwned(2)
	for i := range 8 {
		site.LeaderOf(t, s.URL()).Start(fmt.Sprint("t", i), "hello")
	}
	url := fmt.Sprintf("http://127.0.0.1:%d/aip/console/", port)
	p := browser.Start(t).Open(1200, 800)
	p.Go(url + "#/tasks")
	p.Wait(`[...document.querySelectorAll("tbody .shared")].some((cell) => cell.textContent.startsWith("gateway-"))`)
	asked := 0
	for _, request := range p.Requests() {
		if strings.Contains(request, "/aip/cluster") {
			if asked++; !strings.HasSuffix(request, "?brief=true") {
				t.Errorf("to be opened, the page requested %s", request)
			}
		}
	}
	if asked != 1 {
		t.Errorf("the page asked %d times whether there is a cluster", asked)
	}
	p.Press("c")
	p.WaitText("gateway-1")
	p.WaitText("aip-15")

	p.Press("s")
	p.WaitText("No stream is open.")
	other := c.Gateways[1].Process.Cmd.Process // it is silent, until it is known to be gone
	site.NoError(t, other.Signal(syscall.SIGSTOP))
	p.WaitText("Not all is shown: no answer from gateway-1")
	site.NoError(t, other.Signal(syscall.SIGCONT))
	site.WantGoodPage(t, p, url)
}
