// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/freeport"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// jobs types a block that begins processes, which end with the test.
func (g *guide) jobs(block string) *site.Process {
	g.t.Helper()
	p := site.StartProcess(g.t, g.dir, g.env, "bash", "-c", "trap 'kill $(jobs -p); wait; exit' TERM\n"+block+"\nwait")
	g.t.Cleanup(func() {
		if !p.HasEnded() { // as it has where the page stops what it began
			p.Stop(g.t)
		}
	})
	return p
}

// The sections of docs/cluster.md whose commands are typed.
const (
	setUp      = "Set it up in five minutes"
	rolling    = "A rolling restart or upgrade"
	lostServer = "A server that is lost for ever"
	growing    = "Growing"
	backingUp  = "Backup and restore"
)

// clusterGuide is a reader of docs/cluster.md.
type clusterGuide struct{ *guide }

// readClusterGuide types the commands of docs/cluster.md until three servers and three gateways run on this machine.
func readClusterGuide(t *testing.T) *clusterGuide {
	ports := map[string]int{"9101": site.FreePort(t)}
	for _, first := range []string{"422", "622", "822", "201", "844"} { // of the ports of the first to the fifth one
		ports[first] = freePorts(t, 5)
	}
	g := &clusterGuide{openPage(t, "cluster.md", ports)}
	g.env = []string{"NATS_TIMEOUT=20s"} // of nats; its servers share this machine with other tests
	for name, from := range map[string]string{"nats-server": "server", "nats": "cli"} {
		program := site.Binary(t, "", "../../../internal/natstest/"+from+"/bin/"+name, "make nats")
		site.NoError(t, os.Symlink(program, filepath.Join(g.dir, name)))
	}

	t.Cleanup(g.showLogs)
	g.enter(g.block(setUp, 0))
	g.jobs(g.block(setUp, 1))
	g.configure(g.block(setUp, 2))
	all := g.jobs(g.block(setUp, 3))
	for n := 1; n <= 3; n++ {
		g.started(n, all)
		g.ready(n)
	}
	g.enter(g.block(setUp, 4), "echo: hello", "completed")
	g.enter(g.block(setUp, 5), "gateway-1", "gateway-2", "gateway-3", "aip-15")
	return g
}

// TestClusterGuide types the commands of docs/cluster.md for a task at all gateways, a rolling restart, and a backup
// that is restored.
func TestClusterGuide(t *testing.T) {
	t.Parallel()
	g := readClusterGuide(t)
	for _, list := range []string{"tasks list", "streams", "deliveries list", "groups list"} {
		g.enter(fmt.Sprintf("./caddy aip %s --address 127.0.0.1:%d3", list, g.ports["201"]))
	}

	leave, start, _ := strings.Cut(g.block(rolling, 0), "\n")
	g.enter(leave)
	g.started(1, g.jobs(start))
	g.enter(g.block(rolling, 1), "gateway-1", "gateway-2", "gateway-3")
	g.owns(1)
	g.works("second")
	g.enter(g.block(rolling, 2))
	site.Eventually(t, "the server has ended", func() bool { return isFree(g.ports["422"]*10 + 1) })
	start, wait, _ := strings.Cut(g.block(rolling, 3), "\n")
	g.jobs(start)
	g.enter(wait)
	g.works("third")

	g.enter(g.block(backingUp, 0))
	g.works("late")
	g.enter(g.block(backingUp, 1))
	g.begunRestore("aip-7")
	g.enter(g.block(backingUp, 2))
	again := g.jobs(g.block(setUp, 3))
	for n := 1; n <= 3; n++ {
		g.started(n, again)
		g.ready(n)
	}
	at := fmt.Sprintf("https://localhost:%d1", g.ports["844"])
	g.enter("./caddy aip call "+at+" get --task third", "completed")
	status, stdout, _ := site.RunProcess(t, g.dir, g.env, "./caddy", "aip", "call", at, "get", "--task", "late")
	if status == 0 {
		t.Errorf("a task that is younger than the backup is there: %s", stdout)
	}
	g.works("last")
}

// TestClusterServers types the commands of docs/cluster.md for a server that is lost, for more gateways and servers,
// and for fewer.
func TestClusterServers(t *testing.T) {
	t.Parallel()
	g := readClusterGuide(t)
	g.enter("kill -9 $(cat nats-2.pid); rm -r nats-2")
	g.jobs(g.block(lostServer, 0))
	g.succeeds(g.block(lostServer, 1)) // not while the servers elect a leader
	g.whole("nats-2")
	g.works("second")

	g.started(4, g.jobs(g.block(growing, 0)))
	g.owns(4)
	g.jobs(g.block(growing, 1))
	g.healthy(fmt.Sprintf("%d5/healthz", g.ports["822"]))
	g.enter(g.block(growing, 2), "nats-5")
	g.enter(g.block(growing, 3), `"nats-3": Streams: 0`)
	stop, remove, _ := strings.Cut(g.block(growing, 4), "\n")
	g.enter(stop)
	g.succeeds(remove)
	g.whole("nats-3")
	g.works("third")
}

// showLogs shows what the gateways and servers of a failed test have logged.
func (g *clusterGuide) showLogs() {
	if !g.t.Failed() {
		return
	}
	for _, pattern := range []string{"gateway-?.log", "nats-?.log"} {
		files, _ := filepath.Glob(filepath.Join(g.dir, pattern))
		for _, file := range files {
			log, _ := os.ReadFile(file)
			g.t.Logf("%s:\n%s", filepath.Base(file), site.Tail(string(log), 5_000))
		}
	}
}

// begunRestore leaves a stream as a restore does whose parts did not arrive.
func (g *clusterGuide) begunRestore(stream string) {
	g.t.Helper()
	request := fmt.Sprintf(`'$JS.API.STREAM.RESTORE.%s' "$(cat backup-1/%[1]s/backup.json)"`, stream)
	g.enter(fmt.Sprintf("./nats -s nats://127.0.0.1:%d1 req %s", g.ports["422"], request), "deliver_subject")
}

// started waits until a gateway listens.
func (g *clusterGuide) started(n int, p *site.Process) {
	g.t.Helper()
	p.WaitForPort(g.t, fmt.Sprintf("127.0.0.1:%d%d", g.ports["844"], n))
}

// healthy waits until a gateway or a server says that it is well.
func (g *clusterGuide) healthy(address string) {
	g.t.Helper()
	g.enter("until curl -fso /dev/null http://127.0.0.1:" + address + "; do sleep 1; done")
}

// ready waits until a gateway is ready. It listens before, and then calls wait for the store, but not for ever.
func (g *clusterGuide) ready(n int) {
	g.t.Helper()
	g.healthy(fmt.Sprintf("%d%d/aip/health/ready", g.ports["201"], n))
}

// succeeds types a command until it succeeds.
func (g *clusterGuide) succeeds(command string) {
	g.t.Helper()
	site.Eventually(g.t, command, func() bool {
		status, _, _ := site.RunProcess(g.t, g.dir, g.env, "bash", "-ec", command)
		return status == 0
	})
}

// works has a task at three gateways.
func (g *clusterGuide) works(id string) {
	g.t.Helper()
	g.enter(strings.ReplaceAll(g.block(setUp, 4), "first", id), "echo: hello", "completed")
}

// shown returns what `caddy aip cluster` prints.
func (g *clusterGuide) shown() string {
	_, stdout, _ := site.RunProcess(g.t, g.dir, g.env, "bash", "-ec", g.block(setUp, 5))
	return stdout
}

// owns waits until a gateway has shards.
func (g *clusterGuide) owns(n int) {
	g.t.Helper()
	site.Eventually(g.t, fmt.Sprintf("gateway-%d has shards", n), func() bool {
		for line := range strings.Lines(g.shown()) {
			if strings.HasPrefix(line, fmt.Sprintf("gateway-%d ", n)) && !strings.Contains(line, "  0  ") {
				return true
			}
		}
		return false
	})
}

// whole waits until all streams have all their copies, and a server has none of them.
func (g *clusterGuide) whole(but string) {
	g.t.Helper()
	site.Eventually(g.t, "all streams have all copies", func() bool {
		shown, streams := g.shown(), 0
		for line := range strings.Lines(shown) {
			f := strings.Fields(line) // SHARD OWNER SHOULD EPOCH SINCE LAG DOWN MESSAGES BYTES LEADER STREAM
			if len(f) == 11 && f[5] == "0" && f[6] == "-" && f[9] != "-" {
				streams++
			}
		}
		return streams == 16 && !strings.Contains(shown, but)
	})
}

// freePorts returns the digits before the last one of ports that end with 1 to n, on which no process listens, and
// which no other test gets.
func freePorts(t *testing.T, n int) int {
	t.Helper()
	return site.Must(freeport.TakeRow(n))(t)
}

// TestServersOfContrib runs servers with contrib/nats/nats.conf, and types what docs/cluster.md says of one that is
// lost: their user admin may do that, and the user of the gateways may not.
func TestServersOfContrib(t *testing.T) {
	t.Parallel()
	ports := make(map[string]int)
	for _, first := range []string{"422", "622", "822"} {
		ports[first] = freePorts(t, 3)
	}
	g := &clusterGuide{openPage(t, "cluster.md", ports)}
	site.NoError(t, os.Symlink(site.Binary(t, "", "../../../internal/natstest/cli/bin/nats", "make nats"),
		filepath.Join(g.dir, "nats")))
	server := site.Binary(t, "", "../../../internal/natstest/server/bin/nats-server", "make nats")
	conf := string(site.Must(os.ReadFile("../../../contrib/nats/nats.conf"))(t))
	var routes []string
	for n := 1; n <= 3; n++ {
		routes = append(routes, fmt.Sprintf("nats://route:p@127.0.0.1:%d%d", ports["622"], n))
	}
	var servers []*site.Process
	for n := 1; n <= 3; n++ {
		file := filepath.Join(g.dir, fmt.Sprintf("nats-%d.conf", n))
		here := []string{"/data", filepath.Join(g.dir, fmt.Sprint("data-", n))}
		for _, first := range []string{"422", "622", "822"} {
			here = append(here, "0.0.0.0:"+first+"2", fmt.Sprintf("127.0.0.1:%d%d", ports[first], n))
		}
		site.NoError(t, os.WriteFile(file, []byte(strings.NewReplacer(here...).Replace(conf)), 0o600))
		servers = append(servers, site.StartProcess(t, g.dir, []string{fmt.Sprint("NATS_NAME=nats-", n), "NATS_PASSWORD=p",
			"NATS_ADMIN_PASSWORD=secret", "NATS_ROUTES=[" + strings.Join(routes, ", ") + "]"}, server, "--config", file))
	}
	g.succeeds(fmt.Sprintf("./nats -s nats://127.0.0.1:%d1 --user gateway --password p stream add aip-0 "+
		"--subjects 'aip.0.>' --replicas 3 --defaults", ports["422"]))
	servers[1].Kill()
	remove := g.block(lostServer, 1)
	of := strings.Replace(remove, "--user admin --password secret", "--user gateway --password p", 1)
	if status, stdout, _ := site.RunProcess(t, g.dir, g.env, "bash", "-ec", of); status == 0 || of == remove {
		t.Errorf("the user of the gateways may look after the servers: %s", stdout)
	}
	g.succeeds(remove)
}

// isFree reports whether no process listens on a port.
func isFree(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		l.Close()
	}
	return err == nil
}
