// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/rabbittest"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// The page's Leader and Partner.
const (
	pageLeader  = "10001000011K94ZH3VDXLP4S5EB63614"
	pagePartner = "10001000011K912345E789ABCDEF2353"
)

// groupPage is docs/groups.md, with a gateway that runs its Caddyfile.
type groupPage struct {
	*site.Site
	text   string
	broker *rabbittest.Broker
	ports  *strings.Replacer
}

// newGroupPage imports the page's definitions into a broker, makes the page's certificates, and runs its Caddyfile,
// with a change.
func newGroupPage(t *testing.T, broker *rabbittest.Broker, change func(string) string) *groupPage {
	t.Helper()
	definitions, err := os.ReadFile("../../../contrib/rabbitmq/definitions.json")
	site.NoError(t, err)
	bytesOf := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(definitions)), ","), "[]")
	if said, err := broker.Eval("rabbit_definitions:import_raw(<<" + bytesOf + ">>)"); err != nil || said != "ok" {
		t.Fatalf("the definitions are not imported: %s, %v", said, err)
	}
	t.Cleanup(func() {
		_, err := broker.Eval(`rabbit_vhost:delete(<<"groups">>, <<"test">>)`)
		site.NoError(t, err)
	})
	text, err := os.ReadFile("../../../docs/groups.md")
	site.NoError(t, err)
	p := &groupPage{Site: site.New(t), text: string(text), broker: broker}
	p.ports = strings.NewReplacer("8443", fmt.Sprint(p.Port), "9101", fmt.Sprint(site.FreePort(t)),
		"5672", fmt.Sprint(broker.Port))
	if status, stdout, stderr := p.Caddy("aip", "pki", "--leader", pageLeader); status != 0 {
		t.Fatalf("caddy aip pki ended with %d and said:\n%s%s", status, stdout, stderr)
	}
	p.Run(p.example("caddyfile", "Caddyfile", func(text string) string {
		return change(strings.Replace(text, "{", fmt.Sprintf("{\nadmin 127.0.0.1:%d\n", p.Admin), 1))
	}))
	return p
}

// example writes the page's only example in a language to a file, with a change.
func (p *groupPage) example(language, name string, change func(string) string) (path string) {
	p.T.Helper()
	found := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindStringSubmatch(p.text)
	if found == nil {
		p.T.Fatalf("docs/groups.md has no example in %s", language)
	}
	return p.save(name, change(p.ports.Replace(found[1])))
}

func (p *groupPage) save(name, text string) (path string) {
	p.T.Helper()
	path = filepath.Join(p.Dir, name)
	site.NoError(p.T, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// lead runs the page's Leader, with a change, and returns what it prints.
func (p *groupPage) lead(change func(string) string) string {
	p.T.Helper()
	ctx, cancel := context.WithTimeout(p.T.Context(), 3*site.Patience)
	defer cancel()
	leader, err := os.ReadFile("../../../contrib/rabbitmq/leader.py")
	site.NoError(p.T, err)
	cmd, err := rabbittest.Python(ctx, p.save("leader.py", change(p.ports.Replace(string(leader)))))
	site.NoError(p.T, err)
	cmd.Dir = p.Dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		p.T.Fatalf("the Leader of docs/groups.md: %v\n%s%s", err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String()
}

// leadsToTheEnd runs the page's Leader, with a change, and checks that it prints what the page says.
func (p *groupPage) leadsToTheEnd(change func(string) string) {
	p.T.Helper()
	said := p.lead(change)
	for _, want := range []string{"queueName", "awaiting-completion", "echo: hello", "completed",
		`"connected": false`} {
		if !strings.Contains(said, want) {
			p.T.Errorf("the Leader of docs/groups.md does not print %s, but:\n%s", want, said)
		}
	}
}

func unchanged(text string) string { return text }

// TestGroupExample does what docs/groups.md says to try groups: it imports the definitions into a broker, runs the
// gateway with the page's Caddyfile, and the page's Leader.
func TestGroupExample(t *testing.T) {
	t.Parallel()
	p := newGroupPage(t, site.SharedBroker(t), unchanged)
	p.leadsToTheEnd(unchanged)

	// groups runs caddy aip groups.
	groups := func(want int, args ...string) string {
		t.Helper()
		stdout, stderr := p.LiveCommand(want, append([]string{"groups"}, args...)...)
		return stdout + stderr
	}
	site.Eventually(t, "the Partner has left the group, as the Leader has asked it to", func() bool {
		return groups(0, "list") == "No Partner takes part in such a group.\n"
	})
	p.lead(func(text string) string { // it leaves the Partner in the group
		return regexp.MustCompile(`publish\(.*"leave-group".*`).ReplaceAllString(
			strings.Replace(text, "trip-1", "trip-2", 1), "break")
	})
	site.Eventually(t, "the broker has confirmed everything", func() bool {
		shown := groups(0, "show", "trip-2")
		has := func(line string) bool { return regexp.MustCompile("(?m)^" + line + "$").MatchString(shown) }
		// A product has a message of its own if the Partner has no more to say at that moment.
		return has("executed +2") && has("lag +0") && has("unconfirmed +0") && has("confirmed +[3-9]")
	})
	for _, tt := range []struct{ command, want string }{
		{"list", `(?m)^trip-2 +\S+ +joined +1 +\d+ +0 +0 +localhost:\d+ +10001000011K94ZH3VDXLP4S5EB63614 +-$`},
		{"list --state waiting", "^No Partner takes part in such a group. Without this filter: 1, with state joined.\n$"},
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
	queues, err := p.broker.Queues("groups")
	site.NoError(t, err)
	for _, name := range queues {
		if strings.HasSuffix(name, "_"+pagePartner) {
			t.Errorf("the Partner has left the queue %s behind", name)
		}
	}
}
