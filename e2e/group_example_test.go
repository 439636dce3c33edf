// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/rabbittest"
)

// TestGroupExample does what docs/groups.md says to try groups: it imports the definitions into a broker, runs the
// gateway with the page's Caddyfile, and the page's Leader.
func TestGroupExample(t *testing.T) {
	t.Parallel()
	broker := sharedBroker(t)
	definitions, err := os.ReadFile("../contrib/rabbitmq/definitions.json")
	if err != nil {
		t.Fatal(err)
	}
	bytesOf := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(definitions)), ","), "[]")
	if said, err := broker.Eval("rabbit_definitions:import_raw(<<" + bytesOf + ">>)"); err != nil || said != "ok" {
		t.Fatalf("the definitions are not imported: %s, %v", said, err)
	}

	page, err := os.ReadFile("../docs/groups.md")
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t)
	agent := freePort(t)
	ports := strings.NewReplacer("8443", fmt.Sprint(s.port), "9101", fmt.Sprint(agent), "5672", fmt.Sprint(broker.Port))
	// example writes the page's only example in a language to a file.
	example := func(language, name string, change func(string) string) string {
		t.Helper()
		found := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(page)
		if found == nil {
			t.Fatalf("docs/groups.md has no example in %s", language)
		}
		path := filepath.Join(s.dir, name)
		if err := os.WriteFile(path, []byte(change(ports.Replace(string(found[1])))), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if status, stdout, stderr := s.caddy("aip", "pki", "--leader", "10001000011K94ZH3VDXLP4S5EB63614"); status != 0 {
		t.Fatalf("caddy aip pki ended with %d and said:\n%s%s", status, stdout, stderr)
	}
	s.run(example("caddyfile", "Caddyfile", func(text string) string {
		return strings.Replace(text, "{", fmt.Sprintf("{\nadmin 127.0.0.1:%d\n", s.admin), 1)
	}))
	// lead runs the page's Leader, with a change.
	lead := func(change func(string) string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd, err := rabbittest.Python(ctx, example("python", "leader.py", change))
		if err != nil {
			t.Fatal(err)
		}
		cmd.Dir = s.dir
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("the Leader of docs/groups.md: %v\n%s%s", err, stdout.Bytes(), stderr.Bytes())
		}
		return stdout.String()
	}
	said := lead(func(text string) string { return text })
	for _, want := range []string{"queueName", "awaiting-completion", "echo: hello", "completed",
		`"connected": false`} {
		if !strings.Contains(said, want) {
			t.Errorf("the Leader of docs/groups.md does not print %s, but:\n%s", want, said)
		}
	}

	// groups runs caddy aip groups.
	groups := func(want int, args ...string) string {
		t.Helper()
		args = append(append([]string{"aip", "groups"}, args...), "--address", strings.TrimPrefix(s.adminURL(), "http://"))
		status, stdout, stderr := s.caddy(args...)
		if status != want {
			t.Errorf("caddy %q ended with %d, want %d, and said:\n%s%s", args, status, want, stdout, stderr)
		}
		return stdout + stderr
	}
	if got := groups(0, "list"); got != "No Partner takes part in such a group.\n" {
		t.Errorf("after the Leader has asked the Partner to leave, there is:\n%s", got)
	}
	lead(func(text string) string { // it leaves the Partner in the group
		return regexp.MustCompile(`publish\(.*"leave-group".*`).ReplaceAllString(
			strings.Replace(text, "trip-1", "trip-2", 1), "break")
	})
	eventually(t, "the broker has confirmed everything", func() bool {
		return regexp.MustCompile(`(?m)^confirmed +4$`).MatchString(groups(0, "show", "trip-2"))
	})
	for _, tt := range []struct{ command, want string }{
		{"list", `(?m)^trip-2 +joined +1 +\d+ +0 +0 +localhost:\d+ +10001000011K94ZH3VDXLP4S5EB63614 +-$`},
		{"list --state waiting", "^No Partner takes part in such a group.\n$"},
		{"list --json", `"queue":"group_10001000011K94ZH3VDXLP4S5EB63614_trip-2_10001000011K912345E789ABCDEF2353"`},
		{"show trip-2", `(?m)^executed +2$`},
		{"leave trip-2", "^10001000011K912345E789ABCDEF2353 leaves the group trip-2\n$"},
		{"list", "^No Partner takes part in such a group.\n$"},
	} {
		if got := groups(0, strings.Fields(tt.command)...); !regexp.MustCompile(tt.want).MatchString(got) {
			t.Errorf("caddy aip groups %s does not print %s, but:\n%s", tt.command, tt.want, got)
		}
	}
	groups(1, "leave", "trip-2")
	groups(1, "list", "--state", "asleep")
	queues, err := broker.Queues("groups")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range queues {
		if strings.HasSuffix(name, "_10001000011K912345E789ABCDEF2353") {
			t.Errorf("the Partner has left the queue %s behind", name)
		}
	}
}
