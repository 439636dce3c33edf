// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// TestManyAgents fronts several agents with one process.
func TestManyAgents(t *testing.T) {
	t.Parallel()
	one, two := newFakeAgent(t, nil), newFakeAgent(t, nil)
	second := freePort(t)
	p := certificates(t)
	s := serve(t, config{handle: `
	handle_path /one* {
		aip_gateway a2a/legacy ` + one.url + `
	}
	handle_path /two* {
		aip_gateway a2a/legacy ` + two.url + `
	}
	handle_path /again* {
		aip_gateway a2a/legacy ` + one.url + `
	}`, otherSites: fmt.Sprintf(`https://localhost:%d {
	tls %s %s {
		client_auth {
			mode require_and_verify
			trust_pool file %s
		}
	}
	aip_gateway a2a/legacy %s {
		aic 10001000011K912345E789ABCDEF2353
	}
}`, second, p.Server.Cert, p.Server.Key, p.CA.Cert, two.url)})
	mounts := []string{s.url() + "/one", s.url() + "/two", fmt.Sprintf("https://localhost:%d", second)}
	for _, mount := range mounts {
		leader := leaderOf(t, mount)
		leader.start("same", "hello")
		leader.complete("same")
	}
	if got := leaderOf(t, s.url()+"/again").get("same"); got.Status.State != task.Completed {
		t.Errorf("a second handler of the same agent answers %+v", of(got))
	}
	if n, m := len(one.requests("tasks/send")), len(two.requests("tasks/send")); n != 1 || m != 2 {
		t.Errorf("the agents were asked %d and %d times, want 1 and 2", n, m)
	}
}

// TestValidate proves that a configuration is judged beside a running gateway, and how.
func TestValidate(t *testing.T) {
	t.Parallel()
	agent := newFakeAgent(t, nil)
	good := config{handle: "aip_gateway a2a/legacy " + agent.url}
	s := serve(t, good)
	leader := leaderOf(t, s.url())
	leader.start("one", "hello")

	gateway := func(block string) config {
		return config{handle: "aip_gateway a2a/legacy " + agent.url + " {\n" + block + "\n}"}
	}
	store := func(block string) config {
		return config{handle: good.handle, store: "store pebble " + filepath.Join(s.dir, "store") + " {\n" + block + "\n}"}
	}
	for _, tc := range []struct {
		name   string
		config config
		want   string // nothing where it is good
	}{
		{"the same", good, ""},
		{"another block", gateway("limits {\nbody 1MiB\n}\ntimeouts {\nresponse 5s\n}"), ""},
		{"unknown dialect", config{handle: "aip_gateway a2a/9 " + agent.url},
			`there is no dialect "a2a/9"; this gateway can front .*a2a/legacy`},
		{"bad AIC", gateway("aic 10001000011K912345E789ABCDEF2354"), `aic: .*check digits`},
		{"short AIC", gateway("aic 1000"), `aic: .*4 characters`},
		{"bad AIC in allow", gateway("allow me"), `allow: `},
		{"bad identity mode", gateway("identity maybe"), `identity: .*"maybe".*required, optional or off`},
		{"unknown callers", gateway("callers aip/9"), `callers: there is no dialect "aip/9"`},
		{"misspelt setting", gateway("timeout {\nresponse 5s\n}"),
			`"timeout" belongs into agent: write agent a2a <url> { timeout`},
		{"placeholder in the URL", config{handle: "aip_gateway http://{env.AGENT}/"},
			`the URL cannot have the placeholder {env.AGENT}; in a Caddyfile, write {\$AGENT}`},
		{"placeholder without a value", config{handle: "aip_gateway {\nagent http://x/ {\nheader_up A {env.NO_SUCH}\n}\n}"},
			`header_up A has a placeholder without a value: {env.NO_SUCH}`},
		{"placeholder as the agent", config{handle: "aip_gateway {env.AGENT}"}, `cannot have .* write {\$AGENT}`},
		{"placeholder as the AIC", gateway("aic {env.AIC}"), `aic cannot have the placeholder {env.AIC}; .* write {\$AIC}`},
		{"placeholder as a duration", gateway("heartbeat {env.BEAT}"), `heartbeat cannot have the placeholder {env.BEAT}`},
		{"directory without a value", config{handle: good.handle, store: "store pebble {env.NO_SUCH}"},
			`store: the directory has a placeholder without a value: {env.NO_SUCH}`},
		{"file without a value", config{handle: "aip_gateway {\nagent https://x/ {\ntls {\nca {env.NO_SUCH}\n}\n}\n}"},
			`tls ca: the name of a file has a placeholder without a value: {env.NO_SUCH}`},
		{"URL without a scheme", config{handle: "aip_gateway localhost:9101"},
			`"localhost:9101" is no http or https URL; write http://localhost:9101`},
		{"bad URL", config{handle: "aip_gateway a2a/legacy nonsense"}, `"nonsense" is no http or https URL`},
		{"another scheme", config{handle: "aip_gateway a2a/legacy ftp://x/"}, `is no http or https URL`},
		{"no agent", config{handle: "aip_gateway {\nidentity required\n}"}, `no agent is given`},
		{"two agents", gateway("agent a2a/legacy http://127.0.0.1:1"), `the agent is given twice`},
		{"credentials in the URL", config{handle: "aip_gateway a2a/legacy http://me:secret-word@x/"}, `header_up`},
		{"bad header", config{handle: "aip_gateway {\nagent a2a/legacy http://x/ {\nheader_up \"A B\" c\n}\n}"},
			`the header field "A B" .*check header_up in agent`},
		{"bad duration", gateway("timeouts {\nresponse soon\n}"), `response is "soon", but must be a duration`},
		{"negative duration", gateway("timeouts {\nresponse -1s\n}"), `negative`},
		{"unknown setting", gateway("colour blue"), `there is no "colour" in aip_gateway`},
		{"twice", gateway("identity required\nidentity off"), `identity is given twice`},
		{"bad sync", store("sync sometimes"), `sync is "sometimes", but must be state, always or never`},
		{"bad retention", store("retention for-ever"), `retention is "for-ever", but must be a duration`},
		{"an option that is gone", store("max_events 1"), `the option max_events of store is gone; remove it`},
		{"too few bytes", store("max_bytes 1KiB"), `max_bytes is 1024, but must be at least`},
		{"bad size", store("max_bytes much"), `max_bytes is "much", but must be a size`},
		{"max_size too small", store("max_size 1MiB"), `max_size .1048576 bytes. is less than max_bytes`},
		{"sync of memory", config{handle: good.handle, store: "store memory {\nsync always\n}"},
			`"sync" belongs into store pebble: write store pebble`},
		{"unknown driver", config{handle: good.handle, store: "store sqlite"}, `there is no driver "sqlite"`},
		{"two stores", config{handle: good.handle, store: "store memory\nstore memory"}, `store is given twice`},
		{"one AIC, two agents", config{handle: `
			handle_path /one* {
				aip_gateway a2a/legacy ` + agent.url + ` {
					aic 10001000011K912345E789ABCDEF2353
				}
			}
			handle_path /two* {
				aip_gateway a2a/legacy http://127.0.0.1:1 {
					aic 10001000011k912345e789abcdef2353
				}
			}`}, `two aip_gateway handlers answer under "10001000011K912345E789ABCDEF2353" but front different agents`},
	} {
		path := filepath.Join(s.dir, "other.caddyfile")
		if err := os.WriteFile(path, []byte(s.text(tc.config)), 0o600); err != nil {
			t.Fatal(err)
		}
		status, _, stderr := s.caddy("validate", "--config", path, "--adapter", "caddyfile")
		last := lastMessage(stderr)
		switch {
		case tc.want == "" && status != 0:
			t.Errorf("%s: ended with %d: %s", tc.name, status, last)
		case tc.want != "" && (status == 0 || !regexp.MustCompile(tc.want).MatchString(last)):
			t.Errorf("%s: ended with %d: %s\nwant %s", tc.name, status, last, tc.want)
		case strings.Contains(stderr, "secret-word"):
			t.Errorf("%s: shows the password", tc.name)
		case strings.Contains(stderr, "goroutine "):
			t.Errorf("%s: shows a stack trace", tc.name)
		}
	}
	// A site that verifies no certificates is warned of, with what to add. The others are not.
	for mode, warned := range map[string]bool{"request": true, "require_and_verify": false} {
		path := filepath.Join(s.dir, mode+".caddyfile")
		text := s.text(config{handle: "aip_gateway " + agent.url, mode: mode})
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		status, _, stderr := s.caddy("validate", "--config", path, "--adapter", "caddyfile")
		const warning, advice = "identity is required, but the site verifies no client certificates",
			`with two lines: \"mode require_and_verify\" and \"trust_pool file <ca.pem>\"`
		if status != 0 || strings.Contains(stderr, warning) != warned || strings.Contains(stderr, advice) != warned {
			t.Errorf("client_auth mode %s: ended with %d:\n%s", mode, status, stderr)
		}
	}
	if got := leader.complete("one"); got.Status.State != task.Completed {
		t.Errorf("the gateway was disturbed: %+v", of(got))
	}
}

// lastMessage returns the message of the last line of a log: it is what a person sees.
func lastMessage(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	last := lines[len(lines)-1]
	var entry struct{ Msg string }
	if json.Unmarshal([]byte(last), &entry) == nil {
		return entry.Msg
	}
	return last
}

// TestSecondProcess proves that two processes do not share a store.
func TestSecondProcess(t *testing.T) {
	t.Parallel()
	agent := newFakeAgent(t, nil)
	s := serve(t, config{handle: "aip_gateway a2a/legacy " + agent.url})
	leader := leaderOf(t, s.url())
	leader.start("one", "hello")

	other := newSite(t)
	path := other.write(config{store: "store pebble " + filepath.Join(s.dir, "store"), handle: "aip_gateway a2a/legacy " +
		agent.url})
	status, _, stderr := other.caddy("run", "--config", path, "--adapter", "caddyfile")
	if !strings.Contains(stderr, filepath.Join(s.dir, "store")) ||
		!strings.Contains(stderr, fmt.Sprintf("another process (pid %d)", s.cmd.Process.Pid)) || status == 0 {
		t.Errorf("the second process ended with %d and said:\n%s", status, stderr)
	}
	if got := leader.complete("one"); got.Status.State != task.Completed {
		t.Errorf("the first process was disturbed: %+v", of(got))
	}
	// Once the first has gone, the second may have it.
	s.stop(t)
	other.run(path)
	if got := leaderOf(t, other.url()).get("one"); got.Status.State != task.Completed {
		t.Errorf("the next process answers %+v", of(got))
	}
}

// TestLimits proves that the memory driver keeps nothing, and that retention and limits do what they say.
//
// Promise: messages, products, the AICs of Leaders
// Promise: a Leader or an agent uses up memory, disk or connections
func TestLimits(t *testing.T) {
	t.Parallel()
	agent := newFakeAgent(t, nil)
	c := config{store: "store memory {\nretention 1s\n}", handle: `aip_gateway a2a/legacy ` + agent.url + ` {
		limits {
			tasks_per_leader 2
		}
	}`}
	s := serve(t, c)
	leader := leaderOf(t, s.url())
	leader.start("one", "hello")
	leader.start("two", "hello")
	got := leader.refused(startCall("three", "hello"))
	if members := data(t, got.Data); got.Code != -32050 || members["limit"] != "tasks_per_leader" ||
		members["max"] != 2.0 {
		t.Errorf("one task too many: %s", got.Raw)
	}
	leader.complete("one")
	leader.start("three", "hello")
	eventually(t, "a task that has ended is dropped after its retention", func() bool {
		_, err := leader.try(commandCall(task.Get, "one"))
		return err != nil
	})
	if got := leader.refused(commandCall(task.Get, "one")); got.Code != -32001 {
		t.Errorf("a dropped task: %s", got.Raw)
	}

	products := startCall("large", "hello")
	products.Terms.MaxProductsBytes = 3
	leader.complete("two")
	if got := leader.do(products); got.Status.State != task.Failed ||
		!strings.Contains(says(got.Status.DataItems), "maxProductsBytes") {
		t.Errorf("products that are too large: %+v", of(got))
	}
	s.kill()
	c.store = "store memory" // with a retention in which a task that has ended can be got
	s.start(c)
	if got := leader.refused(commandCall(task.Get, "three")); got.Code != -32001 {
		t.Errorf("the memory driver has kept a task: %s", got.Raw)
	}
	waits := startCall("waits", "hello")
	waits.Terms.AwaitingCompletion = time.Millisecond
	leader.do(waits)
	eventually(t, "the awaitingCompletionTimeout completes a task", func() bool {
		return leader.get("waits").Status.State == task.Completed
	})
}
