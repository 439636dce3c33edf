// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// jobs types a block that begins processes, which end with the test.
func (g *guide) jobs(block string) *process {
	g.t.Helper()
	p := startProcess(g.t, g.dir, g.env, "bash", "-c", "trap 'kill $(jobs -p); wait; exit' TERM\n"+block+"\nwait")
	g.t.Cleanup(func() { p.stop(g.t) })
	return p
}

// TestClusterGuide types the commands of docs/cluster.md: three servers and three gateways on one machine, a task at
// all of them, and a rolling restart.
func TestClusterGuide(t *testing.T) {
	t.Parallel()
	const setup, restart = "Set it up in five minutes", "A rolling restart or upgrade"
	ports := map[string]int{"9101": freePort(t)}
	for _, first := range []string{"422", "622", "822", "201", "844"} { // of the ports of the first, second and third one
		ports[first] = freePorts(t, 3)
	}
	g := openPage(t, "cluster.md", ports)
	g.env = nil
	server := binary(t, "", "../internal/natstest/server/bin/nats-server", "make nats")
	if err := os.Symlink(server, filepath.Join(g.dir, "nats-server")); err != nil {
		t.Fatal(err)
	}
	gateway := func(n int) string { return fmt.Sprintf("127.0.0.1:%d%d", ports["844"], n) }

	g.enter(g.block(setup, 0))
	g.jobs(g.block(setup, 1))
	g.configure(g.block(setup, 2))
	running := g.jobs(g.block(setup, 3))
	for n := 1; n <= 3; n++ {
		running.waitForPort(t, gateway(n))
	}
	g.enter(g.block(setup, 4), "echo: hello", "completed")
	g.enter(g.block(setup, 5), "gateway-1", "gateway-2", "gateway-3", "aip-15")
	for _, list := range []string{"tasks list", "streams", "deliveries list", "groups list"} {
		g.enter(fmt.Sprintf("./caddy aip %s --address 127.0.0.1:%d3", list, ports["201"]))
	}

	stop, start, _ := strings.Cut(g.block(restart, 0), "\n")
	g.enter(stop)
	again := g.jobs(start)
	again.waitForPort(t, gateway(1))
	eventually(t, "the gateway that was restarted has shards", func() bool {
		status, stdout, _ := runProcess(t, g.dir, g.env, "bash", "-ec", g.block(setup, 5))
		for line := range strings.Lines(stdout) {
			if status == 0 && strings.HasPrefix(line, "gateway-1 ") && !strings.Contains(line, "  0  ") {
				return true
			}
		}
		return false
	})
	g.enter(strings.ReplaceAll(g.block(setup, 4), "first", "second"), "echo: hello", "completed")
}

// freePorts returns the digits before the last one of ports that end with 1 to n, on which no process listens.
func freePorts(t *testing.T, n int) int {
	t.Helper()
	for range 1000 {
		first := freePort(t) / 10
		free := true
		for i := 1; i <= n && free; i++ {
			free = isFree(first*10 + i)
		}
		if free {
			return first
		}
	}
	t.Fatal("there are no ports")
	return 0
}
