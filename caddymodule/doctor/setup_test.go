// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddytls"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/acps/agentca"
	"github.com/aip-gateway/aip-gateway/acps/registry"
	"github.com/aip-gateway/aip-gateway/gateway"
)

// examinedStore is a store with something wrong.
type examinedStore struct{ err error }

func (s examinedStore) Examine() error { return s.err }

// deadPoint is a decision point that is down.
type deadPoint struct{}

func (deadPoint) Reach(context.Context) error { return errors.New("refused") }

// connecting is an agent that connects by itself, so that it is not asked.
func connecting() Agent {
	return Agent{Name: "assignee", Dialect: &gateway.Dialect{Transport: gateway.Connecting},
		Config: gateway.AgentConfig{Dialect: "aun-assignee"}}
}

// says returns the findings of a check, each with its status and the begin of its text.
func says(found []Finding, check string) (all []string) {
	for _, f := range found {
		if f.Check == check {
			all = append(all, string(f.Status)+" "+f.Text[:min(len(f.Text), 24)])
		}
	}
	return all
}

// TestExamineSetup holds what is said of plain settings, without an app and without Caddy's routes.
func TestExamineSetup(t *testing.T) {
	requires := Partner{Policies: caddytls.ConnectionPolicies{{ClientAuthentication: &caddytls.ClientAuthentication{
		Mode: "require_and_verify"}}}, ShowsAIC: true}
	door := func(mode string) Door { return Door{"one", "/one", mode} }
	empty := filepath.Join(t.TempDir(), "empty.crl")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		setup   Setup
		mount   Mount
		partner Partner
		check   string
		want    []string
	}{
		"a store": {setup: Setup{Store: Store{"/data", examinedStore{}}}, check: CheckStore, want: []string{
			"ok it can be written"}},
		"a store that is full": {setup: Setup{Store: Store{"/data", examinedStore{errors.New("it is full")}}},
			check: CheckStore, want: []string{"error it is full"}},
		"a store that may be unsafe": {setup: Setup{Store: Store{"/data", examinedStore{&UncheckedError{"it may not sync"}}}},
			check: CheckStore, want: []string{"warning it may not sync"}},
		"a store that cannot be examined": {setup: Setup{Store: Store{Location: "/data"}}, check: CheckStore},

		"certificates are required": {mount: Mount{Door: door("required")}, partner: requires, check: CheckClientAuth,
			want: []string{"ok the site's client_auth f"}},
		"nothing asks for them": {mount: Mount{Door: door("required")}, check: CheckClientAuth, want: []string{
			"error identity is required, bu"}},
		"they are optional": {mount: Mount{Door: door("optional")}, partner: requires, check: CheckClientAuth,
			want: []string{"warning identity is optional, bu"}},
		"other proofs":   {mount: Mount{Door: door("required"), OtherProofs: true}, check: CheckClientAuth},
		"callers of AUN": {mount: Mount{Door: door("required"), OnlyAUN: true}, check: CheckClientAuth},
		"nothing is asked": {mount: Mount{Door: door("off")}, check: CheckClientAuth, want: []string{
			"warning identity is off, so that"}},

		"no AIC": {mount: Mount{NeedsAIC: true}, check: CheckAIC, want: []string{
			"warning the Partner has no aic, "}},
		"a certificate with": {mount: Mount{NeedsAIC: true}, partner: requires, check: CheckAIC},
		"keys in the log": {mount: Mount{Logged: "X-Key"}, check: CheckKeys, want: []string{
			"warning callers send keys or tok"}},
		"an agent that connects": {check: CheckAgent, want: []string{"ok it connects to the gatew"}},
		"an agent that waits for a certificate": {mount: Mount{Agent: Agent{Dialect: &gateway.Dialect{},
			Wait: errors.New("none yet")}}, check: CheckAgent, want: []string{"warning it was not asked: none y"}},
		"brokers that wait for a certificate": {mount: Mount{Brokers: &Brokers{Wait: errors.New("none yet")}},
			check: CheckBroker, want: []string{"warning no broker was asked: non"}},

		"nothing is registered": {mount: Mount{Registration: &Registration{Record: new(registry.Record)}},
			check: CheckRegistration, want: []string{"warning the Partner is not regis"}},
		"one that waits for a person": {mount: Mount{Registration: &Registration{Record: &registry.Record{
			Next: &registry.Entry{Status: registry.Pending}}}}, check: CheckRegistration, want: []string{
			"warning version  waits for a per"}},

		"a policy": {mount: Mount{Policy: &Policy{Rules: []Rule{{}, {HasAll: true}}}}, check: CheckPolicy, want: []string{
			"ok every rule can decide, a"}},
		"a policy that does not do what it seems to": {setup: Setup{InMemory: true}, mount: Mount{Door: door("off"),
			Policy: &Policy{DryRun: true, Rules: []Rule{{HasAll: true}, {NeedsProof: true}},
				Quotas: []Quota{{DryRun: true}, {OfDay: true}}, Point: deadPoint{}}}, check: CheckPolicy, want: []string{
			"warning dry_run is set, so the p", "warning the rule 1 has every cal", "warning identity is off, so no c",
			"warning dry_run is set in the qu", "warning the store is in memory, ", "error the decision point canno"}},

		"certificates that are retired": {setup: Setup{Obtained: []Obtained{{AIC: "1.2",
			Status: agentca.Status{Retired: true}, NoCredential: errors.New("none")}}}, check: CheckCertificate,
			want: []string{"warning its certificates were re"}},
		"no certificates": {setup: Setup{Obtained: []Obtained{{NoCredential: errors.New("none")}}},
			check: CheckCertificate, want: []string{"warning it has no certificate ye", "error there is no account at t"}},
		"certificates that cannot be read": {setup: Setup{Obtained: []Obtained{{Unreadable: errors.New("denied")}}},
			check: CheckCertificate, want: []string{"error its certificates cannot "}},

		"an empty list": {setup: Setup{Lists: []string{empty}}, check: CheckRevocation, want: []string{
			"error it holds no list of revo"}},
		"a missing list": {setup: Setup{Lists: []string{"none"}}, check: CheckRevocation, want: []string{
			"error it cannot be read (open "}},
	} {
		if c.mount.Agent.Dialect == nil {
			c.mount.Agent = connecting()
		}
		c.setup.Mounts = []Mount{c.mount}
		got := says(c.setup.Examine(t.Context(), []Partner{c.partner}, Try{}), c.check)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestExamineRefused: nothing but the reason is said of a handler that is refused.
func TestExamineRefused(t *testing.T) {
	s := Setup{Mounts: []Mount{{Title: "one", Err: gateway.ErrCardSigned}}}
	found := s.Examine(t.Context(), make([]Partner, 1), Try{Text: "go"})
	if len(found) != 1 || found[0].Check != CheckConfiguration || found[0].Status != Broken ||
		!strings.Contains(found[0].Text, "signatures in card") {
		t.Errorf("%+v", found)
	}
}

// TestTried holds which agent is tried.
func TestTried(t *testing.T) {
	one := Mount{Door: Door{Partner: "1"}, Title: "one"}
	two := Mount{Door: Door{Partner: "2"}, Title: "two"}
	for name, c := range map[string]struct {
		mounts []Mount
		try    Try
		want   string
		says   []string
	}{
		"nothing is asked": {mounts: []Mount{one}},
		"the only one":     {mounts: []Mount{one, one}, try: Try{Text: "go"}, want: "1"},
		"one by its title": {mounts: []Mount{one, two}, try: Try{"go", "two"}, want: "2"},
		"one by its name":  {mounts: []Mount{one, two}, try: Try{"go", "1"}, want: "1"},
		"there are several": {mounts: []Mount{one, two}, try: Try{Text: "go"}, says: []string{
			"error no agent was tried, beca"}},
		"there is none": {mounts: []Mount{one, two}, try: Try{"go", "x"}, says: []string{
			"error no agent was tried, beca"}},
	} {
		var e examination
		got := e.tried(c.mounts, c.try)
		if got != c.want {
			t.Errorf("%s: %q is tried, want %q", name, got, c.want)
		}
		if diff := cmp.Diff(c.says, says(e.findings, CheckTry)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestSharedTasksOfDoors holds which Doors share the tasks of others.
func TestSharedTasksOfDoors(t *testing.T) {
	doors := []Door{{"1", "/a", "off"}, {"1", "/b", "required"}, {"2", "/c", "off"}, {"1", "/d", "off"}, {}}
	got := make(map[int]Door)
	for i, other := range SharedTasks(doors) {
		got[i] = other
	}
	if diff := cmp.Diff(map[int]Door{0: doors[1], 3: doors[1]}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestIsServed holds which agents this configuration itself serves.
func TestIsServed(t *testing.T) {
	for url, want := range map[string]bool{
		"http://localhost:8080": true, "http://127.0.0.1:8080/x": true, "http://localhost:8081": false,
		"http://agent.example:8080": false, "https://here.example": true, "https://here.example:444": false,
		"ws://localhost": false, ":": false,
	} {
		if got := isServed(url, []string{":8080", "here.example:443"}); got != want {
			t.Errorf("%s: it is served: %t, want %t", url, got, want)
		}
	}
}
