// SPDX-License-Identifier: Apache-2.0

package operations

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
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestManyAgents fronts several agents with one process.
func TestManyAgents(t *testing.T) {
	t.Parallel()
	one, two := site.NewFakeAgent(t, nil), site.NewFakeAgent(t, nil)
	second := site.FreePort(t)
	p := site.Certificates(t)
	s := site.Serve(t, site.Config{Handle: `
	handle_path /one* {
		aip_gateway a2a/legacy ` + one.URL + `
	}
	handle_path /two* {
		aip_gateway a2a/legacy ` + two.URL + `
	}
	handle_path /again* {
		aip_gateway a2a/legacy ` + one.URL + `
	}`, OtherSites: fmt.Sprintf(`https://localhost:%d {
	tls %s %s {
		client_auth {
			mode require_and_verify
			trust_pool file %s
		}
	}
	aip_gateway a2a/legacy %s {
		aic 10001000011K912345E789ABCDEF2353
	}
}`, second, p.Server.Cert, p.Server.Key, p.CA.Cert, two.URL)})
	mounts := []string{s.URL() + "/one", s.URL() + "/two", fmt.Sprintf("https://localhost:%d", second)}
	for _, mount := range mounts {
		leader := site.LeaderOf(t, mount)
		leader.Start("same", "hello")
		leader.Complete("same")
	}
	if got := site.LeaderOf(t, s.URL()+"/again").Get("same"); got.Status.State != task.Completed {
		t.Errorf("a second handler of the same agent answers %+v", site.AnswerOf(got))
	}
	if n, m := len(one.Requests("tasks/send")), len(two.Requests("tasks/send")); n != 1 || m != 2 {
		t.Errorf("the agents were asked %d and %d times, want 1 and 2", n, m)
	}
}

// TestValidate proves that a configuration is judged beside a running gateway, and how.
func TestValidate(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, nil)
	good := site.Config{Handle: "aip_gateway a2a/legacy " + agent.URL}
	s := site.Serve(t, good)
	leader := site.LeaderOf(t, s.URL())
	leader.Start("one", "hello")

	gateway := func(block string) site.Config {
		return site.Config{Handle: "aip_gateway a2a/legacy " + agent.URL + " {\n" + block + "\n}"}
	}
	store := func(block string) site.Config {
		return site.Config{Handle: good.Handle, Store: "store pebble " + filepath.Join(s.Dir, "store") + " {\n" + block +
			"\n}"}
	}
	for _, tc := range []struct {
		name   string
		config site.Config
		want   string // nothing where it is good
	}{
		{"the same", good, ""},
		{"another block", gateway("limits {\nbody 1MiB\n}\ntimeouts {\nresponse 5s\n}"), ""},
		{"unknown dialect", site.Config{Handle: "aip_gateway a2a/9 " + agent.URL},
			`there is no dialect "a2a/9"; this gateway can front .*a2a/legacy`},
		{"bad AIC", gateway("aic 10001000011K912345E789ABCDEF2354"), `aic: .*check digits`},
		{"short AIC", gateway("aic 1000"), `aic: .*4 characters`},
		{"bad AIC in allow", gateway("allow me"), `allow: `},
		{"bad identity mode", gateway("identity maybe"), `identity: .*"maybe".*required, optional or off`},
		{"unknown callers", gateway("callers aip/9"), `callers: there is no dialect "aip/9"`},
		{"misspelt setting", gateway("timeout {\nresponse 5s\n}"),
			`"timeout" belongs into agent: write agent a2a <url> { timeout`},
		{"placeholder in the URL", site.Config{Handle: "aip_gateway http://{env.AGENT}/"},
			`the URL cannot have the placeholder {env.AGENT}; in a Caddyfile, write {\$AGENT}`},
		{"placeholder without a value",
			site.Config{Handle: "aip_gateway {\nagent http://x/ {\nheader_up A {env.NO_SUCH}\n}\n}"},
			`header_up A has a placeholder without a value: {env.NO_SUCH}`},
		{"placeholder as the agent", site.Config{Handle: "aip_gateway {env.AGENT}"}, `cannot have .* write {\$AGENT}`},
		{"placeholder as the AIC", gateway("aic {env.AIC}"), `aic cannot have the placeholder {env.AIC}; .* write {\$AIC}`},
		{"placeholder as a duration", gateway("heartbeat {env.BEAT}"), `heartbeat cannot have the placeholder {env.BEAT}`},
		{"directory without a value", site.Config{Handle: good.Handle, Store: "store pebble {env.NO_SUCH}"},
			`store: the directory has a placeholder without a value: {env.NO_SUCH}`},
		{"file without a value", site.Config{Handle: "aip_gateway {\nagent https://x/ {\ntls {\nca {env.NO_SUCH}\n}\n}\n}"},
			`tls ca: the name of a file has a placeholder without a value: {env.NO_SUCH}`},
		{"URL without a scheme", site.Config{Handle: "aip_gateway localhost:9101"},
			`"localhost:9101" is no http or https URL; write http://localhost:9101`},
		{"bad URL", site.Config{Handle: "aip_gateway a2a/legacy nonsense"}, `"nonsense" is no http or https URL`},
		{"another scheme", site.Config{Handle: "aip_gateway a2a/legacy ftp://x/"}, `is no http or https URL`},
		{"no agent", site.Config{Handle: "aip_gateway {\nidentity required\n}"}, `no agent is given`},
		{"two agents", gateway("agent a2a/legacy http://127.0.0.1:1"), `the agent is given twice`},
		{"credentials in the URL", site.Config{Handle: "aip_gateway a2a/legacy http://me:secret-word@x/"}, `header_up`},
		{"bad header", site.Config{Handle: "aip_gateway {\nagent a2a/legacy http://x/ {\nheader_up \"A B\" c\n}\n}"},
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
		{"sync of memory", site.Config{Handle: good.Handle, Store: "store memory {\nsync always\n}"},
			`"sync" belongs into store pebble: write store pebble`},
		{"unknown driver", site.Config{Handle: good.Handle, Store: "store sqlite"}, `there is no driver "sqlite"`},
		{"two stores", site.Config{Handle: good.Handle, Store: "store memory\nstore memory"}, `store is given twice`},
		{"one AIC, two agents", site.Config{Handle: `
			handle_path /one* {
				aip_gateway a2a/legacy ` + agent.URL + ` {
					aic 10001000011K912345E789ABCDEF2353
				}
			}
			handle_path /two* {
				aip_gateway a2a/legacy http://127.0.0.1:1 {
					aic 10001000011k912345e789abcdef2353
				}
			}`}, `two aip_gateway handlers answer under "10001000011K912345E789ABCDEF2353" but front different agents`},
	} {
		path := filepath.Join(s.Dir, "other.caddyfile")
		if err := os.WriteFile(path, []byte(s.Text(tc.config)), 0o600); err != nil {
			t.Fatal(err)
		}
		status, _, stderr := s.Caddy("validate", "--config", path, "--adapter", "caddyfile")
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
		path := filepath.Join(s.Dir, mode+".caddyfile")
		text := s.Text(site.Config{Handle: "aip_gateway " + agent.URL, Mode: mode})
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		status, _, stderr := s.Caddy("validate", "--config", path, "--adapter", "caddyfile")
		const warning, advice = "identity is required, but the site verifies no client certificates",
			`with two lines: \"mode require_and_verify\" and \"trust_pool file <ca.pem>\"`
		if status != 0 || strings.Contains(stderr, warning) != warned || strings.Contains(stderr, advice) != warned {
			t.Errorf("client_auth mode %s: ended with %d:\n%s", mode, status, stderr)
		}
	}
	if got := leader.Complete("one"); got.Status.State != task.Completed {
		t.Errorf("the gateway was disturbed: %+v", site.AnswerOf(got))
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
	agent := site.NewFakeAgent(t, nil)
	s := site.Serve(t, site.Config{Handle: "aip_gateway a2a/legacy " + agent.URL})
	leader := site.LeaderOf(t, s.URL())
	leader.Start("one", "hello")

	other := site.New(t)
	path := other.Write(site.Config{Store: "store pebble " + filepath.Join(s.Dir, "store"),
		Handle: "aip_gateway a2a/legacy " +
			agent.URL})
	status, _, stderr := other.Caddy("run", "--config", path, "--adapter", "caddyfile")
	if !strings.Contains(stderr, filepath.Join(s.Dir, "store")) ||
		!strings.Contains(stderr, fmt.Sprintf("another process (pid %d)", s.Cmd.Process.Pid)) || status == 0 {
		t.Errorf("the second process ended with %d and said:\n%s", status, stderr)
	}
	if got := leader.Complete("one"); got.Status.State != task.Completed {
		t.Errorf("the first process was disturbed: %+v", site.AnswerOf(got))
	}
	// Once the first has gone, the second may have it.
	s.Stop(t)
	other.Run(path)
	if got := site.LeaderOf(t, other.URL()).Get("one"); got.Status.State != task.Completed {
		t.Errorf("the next process answers %+v", site.AnswerOf(got))
	}
}

// TestLimits proves that the memory driver keeps nothing, and that retention and limits do what they say.
//
// Promise: messages, products, the AICs of Leaders
// Promise: a Leader or an agent uses up memory, disk or connections
func TestLimits(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, nil)
	c := site.Config{Store: "store memory {\nretention 1s\n}", Handle: `aip_gateway a2a/legacy ` + agent.URL + ` {
		limits {
			tasks_per_leader 2
		}
	}`}
	s := site.Serve(t, c)
	leader := site.LeaderOf(t, s.URL())
	leader.Start("one", "hello")
	leader.Start("two", "hello")
	got := leader.Refused(site.StartCall("three", "hello"))
	if members := site.Data(t, got.Data); got.Code != -32050 || members["limit"] != "tasks_per_leader" ||
		members["max"] != 2.0 {
		t.Errorf("one task too many: %s", got.Raw)
	}
	leader.Complete("one")
	leader.Start("three", "hello")
	site.Eventually(t, "a task that has ended is dropped after its retention", func() bool {
		_, err := leader.Try(site.CommandCall(task.Get, "one"))
		return err != nil
	})
	if got := leader.Refused(site.CommandCall(task.Get, "one")); got.Code != -32001 {
		t.Errorf("a dropped task: %s", got.Raw)
	}

	products := site.StartCall("large", "hello")
	products.Terms.MaxProductsBytes = 3
	leader.Complete("two")
	if got := leader.Send(products); got.Status.State != task.Failed ||
		!strings.Contains(site.Says(got.Status.DataItems), "maxProductsBytes") {
		t.Errorf("products that are too large: %+v", site.AnswerOf(got))
	}
	s.Kill()
	c.Store = "store memory" // with a retention in which a task that has ended can be got
	s.Start(c)
	if got := leader.Refused(site.CommandCall(task.Get, "three")); got.Code != -32001 {
		t.Errorf("the memory driver has kept a task: %s", got.Raw)
	}
	waits := site.StartCall("waits", "hello")
	waits.Terms.AwaitingCompletion = time.Millisecond
	leader.Send(waits)
	site.Eventually(t, "the awaitingCompletionTimeout completes a task", func() bool {
		return leader.Get("waits").Status.State == task.Completed
	})
}
