// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// guide is a reader of a page of docs, such as getting-started.md, who types what it says in a folder with ./caddy.
// Only the ports are others.
type guide struct {
	t      *testing.T
	dir    string
	env    []string
	blocks map[string][]string // of code, by the heading of the section
	ports  map[string]int      // by those of the page
}

func openGuide(t *testing.T) *guide {
	t.Helper()
	ports := make(map[string]int)
	for _, port := range []string{"8443", "8444", "9101", "9120", "8080"} {
		ports[port] = site.FreePort(t)
	}
	return openPage(t, "getting-started.md", ports)
}

// openPage opens a page in which ports, or the first digits of several, are replaced.
func openPage(t *testing.T, name string, ports map[string]int) *guide {
	t.Helper()
	page, err := os.ReadFile("../../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	tests, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	g := &guide{t: t, dir: t.TempDir(), env: []string{fmt.Sprintf("CADDY_ADMIN=127.0.0.1:%d", site.FreePort(t))},
		blocks: make(map[string][]string), ports: ports}
	var replaced []string
	for port, free := range ports {
		replaced = append(replaced, port, fmt.Sprint(free))
	}
	text := strings.NewReplacer(replaced...).Replace(string(page)) // at once: a free port may have the digits of another
	for section := range strings.SplitSeq(text, "\n## ") {
		heading, rest, _ := strings.Cut(section, "\n")
		for _, m := range regexp.MustCompile("(?s)```\\w*\n(.*?)```").FindAllStringSubmatch(rest, -1) {
			g.blocks[heading] = append(g.blocks[heading], m[1])
		}
	}
	for name, target := range map[string]string{"caddy": site.CaddyBinary(t), "test": tests} {
		if err := os.Symlink(target, filepath.Join(g.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// block returns a block of code of a section.
func (g *guide) block(section string, n int) string {
	g.t.Helper()
	if n >= len(g.blocks[section]) {
		g.t.Fatalf("%q has %d blocks", section, len(g.blocks[section]))
	}
	return g.blocks[section][n]
}

// line returns a line of a block.
func (g *guide) line(section string, block, n int) string {
	g.t.Helper()
	lines := strings.Split(g.block(section, block), "\n")
	if n >= len(lines) {
		g.t.Fatalf("block %d of %q has %d lines", block, section, len(lines))
	}
	return lines[n]
}

// enter types commands, which must succeed and print what is wanted.
func (g *guide) enter(commands string, wants ...string) {
	g.t.Helper()
	status, stdout, stderr := site.RunProcess(g.t, g.dir, g.env, "bash", "-ec", commands)
	if status != 0 {
		g.t.Errorf("%s\nended with %d and said:\n%s%s", commands, status, stdout, stderr)
	}
	for _, want := range wants {
		if !strings.Contains(stdout, want) {
			g.t.Errorf("%s\nprints no %q:\n%s%s", commands, want, stdout, stderr)
		}
	}
}

// open types a command that runs on, in a terminal of its own.
func (g *guide) open(command string) *site.Process {
	g.t.Helper()
	return site.StartProcess(g.t, g.dir, g.env, "bash", "-c", "exec "+command)
}

// listens waits until a process accepts connections at the port that the page names.
func (g *guide) listens(p *site.Process, port string) {
	g.t.Helper()
	p.WaitForPort(g.t, fmt.Sprintf("127.0.0.1:%d", g.ports[port]))
}

// configure writes the Caddyfile.
func (g *guide) configure(text string) { g.write("Caddyfile", text) }

func (g *guide) write(name, text string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, name), []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// receiver puts contrib/webhooks/receiver.js into the folder.
func (g *guide) receiver() {
	g.t.Helper()
	const name = "contrib/webhooks/receiver.js"
	code, err := os.ReadFile("../../../" + name)
	if err == nil {
		err = os.MkdirAll(filepath.Join(g.dir, filepath.Dir(name)), 0o700)
	}
	if err != nil {
		g.t.Fatal(err)
	}
	g.write(name, strings.ReplaceAll(string(code), "8080", fmt.Sprint(g.ports["8080"])))
}

// resumed waits for the end of a stream that was cut, and checks that it has printed each of its pieces once.
func (g *guide) resumed(stream *site.Process, pieces int) {
	g.t.Helper()
	<-stream.Ended
	said := stream.Out.String()
	if stream.Err != nil || !strings.Contains(said, "the stream was interrupted") {
		g.t.Errorf("the stream ended with %v and printed\n%s", stream.Err, said)
	}
	for i := range pieces {
		if n := strings.Count(said, fmt.Sprintf("chunk-%d ", i)); n != 1 {
			g.t.Errorf("piece %d was printed %d times", i, n)
		}
	}
}

// TestGettingStarted types the commands of docs/getting-started.md, from the first start to certificates of one's own.
func TestGettingStarted(t *testing.T) {
	t.Parallel()
	const (
		sample  = "With the sample agent"
		process = "With an agent in a process of its own"
		second  = "With a second Leader"
		newest  = "With an agent of A2A 1.0"
		webhook = "With a webhook"
		console = "With the console"
		own     = "With certificates of your own"
	)
	g := openGuide(t)
	g.enter("./caddy aip pki") // which `make run` does

	caddyfile := g.block(process, 0)
	g.configure(caddyfile)
	g.listens(g.open(g.line(process, 1, 0)+fmt.Sprintf(" --listen 127.0.0.1:%d", g.ports["9101"])), "9101")
	g.enter(g.line(process, 2, 0))
	gateway := g.open(g.line(process, 2, 1))
	g.listens(gateway, "8443")

	// The gateway that `make run` starts has the same agent.
	g.enter(g.block(sample, 1), "awaiting-completion", "echo: hello")
	g.enter(g.block(sample, 3), "which colour?", "you said: blue", "completed", "continue")
	g.enter(g.block(sample, 4), "chunk-0 chunk-1 chunk-2 chunk-3 chunk-4")

	stream := g.open(g.line(process, 3, 0))
	stream.WaitFor(t, `chunk-2`)
	g.enter(g.block(process, 4))
	<-gateway.Ended
	gateway = g.open(g.line(process, 2, 1))
	g.listens(gateway, "8443")
	g.resumed(stream, 40)

	g.enter("! "+g.line(second, 0, 0)+" 2>&1", "-32001")
	g.enter(g.line(second, 0, 1), "echo: mine")
	g.enter(g.line(second, 0, 2), "t1 ", "t2 ")

	g.listens(g.open(g.line(newest, 0, 1)), "9120")
	stream = g.open(g.line(newest, 0, 2))
	stream.WaitFor(t, `chunk-2`)
	caddyfile += g.block(newest, 1)
	g.configure(caddyfile)
	g.enter("./caddy reload")
	g.resumed(stream, 60)
	g.enter(g.block(newest, 2), "chunk-2", "awaiting-completion")
	g.enter(g.block(newest, 3), `"name":"go-1.0-echo"`)

	// The page does not show the keys: they are put where it has dots.
	_, keys, _ := site.RunProcess(t, g.dir, g.env, "bash", "-ec", g.line(webhook, 0, 0))
	private, public := regexp.MustCompile(`whsk_\S+`).FindString(keys), regexp.MustCompile(`whpk_\S+`).FindString(keys)
	g.receiver()
	receiver := g.open("env " + strings.ReplaceAll(g.line(webhook, 0, 1), "whpk_…", public))
	g.listens(receiver, "8080")
	caddyfile = strings.Replace(caddyfile, "{\n", "{\n"+g.block(webhook, 1), 1)
	g.configure(caddyfile)
	g.enter("./caddy stop")
	<-gateway.Ended
	gateway = g.open("env WEBHOOK_SIGNING_KEY=" + private + " " + g.line(process, 2, 1))
	g.listens(gateway, "8443")
	g.enter(g.block(webhook, 2))
	receiver.WaitFor(t, "t3 completed")
	if got := receiver.Out.String(); got != g.block(webhook, 3) {
		t.Errorf("the receiver prints\n%s", got)
	}

	open := g.open(g.line(console, 0, 0))
	url := open.WaitFor(t, `http://\S+`)[0]
	g.enter("curl -sf "+url, "<title>AIP console</title>")
	open.Stop(t)

	g.enter(g.block(own, 0))
	g.configure(strings.ReplaceAll(caddyfile, ".pki/", "certs/"))
	g.enter(g.block(own, 1), "echo: hello")
	gateway.Stop(t)
}
