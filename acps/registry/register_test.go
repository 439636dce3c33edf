// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/acps/registry/registrytest"
)

// account returns the account of the user as another process has it.
func account(t *testing.T, r *registrytest.Registry, s Storage) *Account {
	t.Helper()
	c := open(t, r.URL)
	return NewAccount(c, &Password{Client: c, User: registrytest.User, Secret: func() (string, error) {
		return registrytest.Password, nil
	}}, s)
}

const partner = "https://agent.example/{AIC}"

// order returns an order for a version with a description.
func order(version, description string) Order {
	acs := fmt.Sprintf(`{"aic":"unassigned","name":"Echo","version":%q,"description":%q,
		"endPoints":[{"url":%q}]}`, version, description, partner)
	return Order{Partner: partner, ACS: json.RawMessage(acs), Differs: func(registered json.RawMessage) (bool, error) {
		var has struct{ Description string }
		err := json.Unmarshal(registered, &has)
		return has.Description != description, err
	}}
}

// TestRegisteredAtMount: a version registered with the Partner's mount point for an endpoint is the Partner's own, also
// if its record was lost. A decided or waiting one stays as it is; a draft gets the endpoint, and so does a new
// version.
func TestRegisteredAtMount(t *testing.T) {
	now := func(version string) Order {
		o := order(version, "echoes")
		o.ACS = bytes.ReplaceAll(o.ACS, []byte(partner), []byte(partner+"/rpc"))
		return o
	}
	for name, tc := range map[string]struct {
		process, approve bool
		status           Status // of the version after it is registered again
		endpoint         string
	}{
		"it waits": {false, false, Pending, partner},
		"rejected": {true, false, Pending, partner + "/rpc"},
		"approved": {true, true, Approved, partner},
	} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, lost %v", name, lost), func(t *testing.T) {
				r, s := registrytest.New(t), newMemory()
				must(t, account(t, r, s), order("1.0.0", "echoes"))
				aic, want := "", tc.endpoint
				if tc.process {
					aic = r.Process("Echo", "1.0.0", tc.approve, "no")
				}
				if tc.approve {
					want = strings.ReplaceAll(want, placeholder, aic)
				}
				if lost {
					s = newMemory()
				}
				a := account(t, r, s)
				record := must(t, a, now("1.0.0"))
				e := record.Next
				if tc.approve {
					e = record.Current
				}
				if e == nil || e.Status != tc.status || record.AIC() != aic || e.Endpoint() != want {
					t.Fatalf("got %+v", record)
				}
				if n := len(r.Agents("Echo")); n != 1 {
					t.Errorf("%d versions are registered", n)
				}
				if !tc.approve {
					return
				}
				o := now("2.0.0")
				if _, err := a.Register(t.Context(), o); !errors.Is(err, ErrNewVersion) {
					t.Errorf("another version: %v", err)
				}
				o.NewVersion = true
				if record = must(t, a, o); record.AIC() != aic || record.Next.Endpoint() != partner+"/rpc" {
					t.Errorf("a new version: %+v", record)
				}
			})
		}
	}
}

// TestOtherPartner: a user's registration for one Partner is not taken for another one of the same name, neither the
// same version nor other ones, and a refused registration leaves no record.
func TestOtherPartner(t *testing.T) {
	r, s := registrytest.New(t), newMemory()
	a := account(t, r, s)
	if _, err := a.Register(t.Context(), order("1.0.0", "echoes")); err != nil {
		t.Fatal(err)
	}
	aic := r.Process("Echo", "1.0.0", true, "")
	const elsewhere = "https://agent.example/two/{AIC}"
	other := func(version string) Order {
		o := order(version, "echoes")
		o.Partner, o.ACS = elsewhere, bytes.ReplaceAll(o.ACS, []byte(partner), []byte(elsewhere))
		return o
	}
	for range 2 {
		record, err := a.Register(t.Context(), other("1.0.0"))
		if !errors.Is(err, ErrTaken) || !strings.Contains(err.Error(), strings.ReplaceAll(partner, "{AIC}", aic)) {
			t.Errorf("the same version: %v", err)
		}
		if record.AIC() != "" || record != nil && record.Next != nil {
			t.Errorf("the same version: %+v", record)
		}
	}
	record, err := a.Register(t.Context(), other("2.0.0"))
	if err != nil || record.AIC() != "" || record.Next.Version != "2.0.0" {
		t.Errorf("another version: %v %+v", err, record)
	}
	second := r.Process("Echo", "2.0.0", true, "")
	if record, err = a.Register(t.Context(), other("2.0.0")); err != nil || record.AIC() != second {
		t.Errorf("after its approval: %v %+v", err, record)
	}
	// The first Partner finds its own, after its record was lost.
	if record, err = account(t, r, newMemory()).Register(t.Context(), order("1.0.0", "echoes")); err != nil ||
		record.AIC() != aic {
		t.Errorf("the first one again: %v %+v", err, record)
	}
}

// TestFullStorage has a registry refuse an order, and a full storage: the error has both.
func TestFullStorage(t *testing.T) {
	r, s := registrytest.New(t), newMemory()
	a := account(t, r, s)
	if _, err := a.Register(t.Context(), order("1.0.0", "echoes")); err != nil {
		t.Fatal(err)
	}
	s.full = syscall.ENOSPC
	_, err := a.Register(t.Context(), order("1.1.0", "echoes"))
	for _, want := range []error{ErrUnfinished, ErrNotStored, syscall.ENOSPC} {
		if !errors.Is(err, want) {
			t.Errorf("%v is not told of: %v", want, err)
		}
	}
}

func status(r *Record) string {
	one := func(e *Entry) string {
		if e == nil {
			return "-"
		}
		return strings.TrimSpace(fmt.Sprint(e.Version, " ", e.Status, " ", e.AIC, " ", e.Comments))
	}
	return one(r.Current) + " | " + one(r.Next)
}

// TestRegister goes from nothing to an AIC, with one login.
func TestRegister(t *testing.T) {
	r, s := registrytest.New(t), newMemory()
	a := account(t, r, s)
	record, err := a.Register(t.Context(), order("1.0.0", "echoes"))
	if err != nil || status(record) != "- | 1.0.0 pending" {
		t.Fatalf("got %s, %v", status(record), err)
	}
	record, err = a.Poll(t.Context(), partner, time.Hour)
	if err != nil || r.Count("GET /api/v1/agent/client/") != 0 {
		t.Errorf("it is asked before it is time: %s, %v", status(record), err)
	}
	aic := r.Process("Echo", "1.0.0", true, "ok")
	b := account(t, r, s) // after a restart
	record, err = b.Poll(t.Context(), partner, 0)
	if err != nil || status(record) != "1.0.0 approved "+aic+" ok | -" {
		t.Fatalf("got %s, %v", status(record), err)
	}
	if !strings.Contains(string(record.Current.ACS), "https://agent.example/"+aic) {
		t.Errorf("the ACS is not the registry's: %s", record.Current.ACS)
	}
	if record, err = b.Register(t.Context(), order("1.0.0", "echoes")); err != nil || record.AIC() != aic {
		t.Errorf("the same order again: %s, %v", status(record), err)
	}
	if _, err = b.Register(t.Context(), order("1.0.0", "shouts")); !errors.Is(err, ErrChanged) {
		t.Errorf("an order for what cannot be changed: %v", err)
	}
	if n := r.LoggedIn(); n != 1 {
		t.Errorf("there were %d logins", n)
	}
	if got := r.Agents("Echo"); !slices.Equal(got, []string{"1.0.0 APPROVED"}) {
		t.Errorf("there are %v", got)
	}
	if e, err := b.EAB(t.Context(), aic); err != nil || e.MACKey == "" || e.Expires.IsZero() {
		t.Errorf("the EAB is %+v, %v", e, err)
	}
	if _, err := b.EAB(t.Context(), "X"); !Is(err, Forbidden) {
		t.Errorf("the EAB of another is %v", err)
	}
}

// TestCrashes: whatever request breaks off, before or after the registry has carried it out, and whatever the process
// has kept until then, the same order given again goes on, and nothing is drafted or registered twice.
func TestCrashes(t *testing.T) {
	for _, fault := range []registrytest.Fault{registrytest.Before, registrytest.After, registrytest.Half,
		registrytest.Bad} {
		for step := range 12 {
			r, s := registrytest.New(t), newMemory()
			var mu sync.Mutex
			kept := s.clone() // left by the crash
			n, hit := 0, ""
			r.Fail(func(method, path string) registrytest.Fault {
				mu.Lock()
				defer mu.Unlock()
				if n++; n-1 == step {
					hit = method + " " + path
					kept = s.clone() // the process dies in this request
					return fault
				}
				return registrytest.None
			})
			var err error
			run := func(s *memory) (aic string) {
				a := account(t, r, s)
				if _, err = a.Register(t.Context(), order("1.0.0", "echoes")); err != nil {
					return ""
				}
				if slices.Equal(r.Agents("Echo"), []string{"1.0.0 PENDING"}) {
					r.Process("Echo", "1.0.0", true, "ok")
				}
				var record *Record
				if record, err = a.Poll(t.Context(), partner, 0); err != nil {
					return ""
				}
				return record.AIC()
			}
			aic := run(s)
			for range 2 {
				mu.Lock()
				left := kept
				mu.Unlock()
				if aic = run(left); aic != "" {
					break
				}
			}
			mu.Lock()
			at := hit
			mu.Unlock()
			if got := r.Agents("Echo"); aic == "" || !slices.Equal(got, []string{"1.0.0 APPROVED"}) {
				t.Errorf("fault %d at %q: AIC %q, the registry has %v; %v", fault, at, aic, got, err)
			}
			if drafts := r.Count("POST /api/v1/agent/client"); at != "" && drafts > 6 {
				t.Errorf("fault %d at %q: %d changes", fault, at, drafts)
			}
			if at == "" {
				break // there are no more steps
			}
		}
	}
}

// TestRejected: the comments are kept. An unchanged version is not submitted again, a better one is.
func TestRejected(t *testing.T) {
	r := registrytest.New(t)
	a := account(t, r, newMemory())
	must(t, a, order("1.0.0", "echoes"))
	r.Process("Echo", "1.0.0", false, "describe the skills\nbetter")
	record, err := a.Register(t.Context(), order("1.0.0", "echoes"))
	if !errors.Is(err, ErrRejected) || status(record) != "- | 1.0.0 rejected  describe the skills better" {
		t.Fatalf("got %s, %v", status(record), err)
	}
	if record = must(t, a, order("1.0.0", "repeats")); record.Next.Status != Pending {
		t.Errorf("got %s", status(record))
	}
	r.Process("Echo", "1.0.0", false, "call us")
	again := order("1.0.0", "repeats")
	again.Resubmit = true
	if record = must(t, a, again); record.Next.Status != Pending {
		t.Errorf("got %s", status(record))
	}
	if _, err = a.Register(t.Context(), order("1.0.0", "sings")); !errors.Is(err, ErrPendingOther) {
		t.Errorf("got %v", err)
	}
}

func must(t *testing.T, a *Account, o Order) *Record {
	t.Helper()
	r, err := a.Register(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestNewVersion: a version beside one with an AIC is made only when it is asked for, also if the record was lost, and
// the old AIC stays until the new one is there.
func TestNewVersion(t *testing.T) {
	r, s := registrytest.New(t), newMemory()
	a := account(t, r, s)
	must(t, a, order("1.0.0", "echoes"))
	if _, err := a.Register(t.Context(), order("1.1.0", "sings")); !errors.Is(err, ErrUnfinished) {
		t.Errorf("beside what waits: %v", err)
	}
	old := r.Process("Echo", "1.0.0", true, "ok")
	for name, kept := range map[string]*memory{"kept": s, "lost": newMemory()} {
		record, err := account(t, r, kept).Register(t.Context(), order("1.1.0", "sings"))
		if !errors.Is(err, ErrNewVersion) || !strings.Contains(err.Error(), old) {
			t.Errorf("%s: got %s, %v", name, status(record), err)
		}
	}
	if _, err := a.Poll(t.Context(), partner, 0); err != nil {
		t.Fatal(err)
	}
	next := order("1.1.0", "sings")
	next.NewVersion = true
	if record := must(t, a, next); record.AIC() != old || record.Next.Status != Pending {
		t.Errorf("got %s", status(record))
	}
	if record := must(t, a, order("1.1.0", "sings")); record.AIC() != old { // goes on without being asked for again
		t.Errorf("got %s", status(record))
	}
	aic := r.Process("Echo", "1.1.0", true, "ok")
	record, err := a.Poll(t.Context(), partner, 0)
	if err != nil || record.AIC() != aic {
		t.Fatalf("got %s, %v", status(record), err)
	}
	if diff := cmp.Diff([]string{old}, record.Former); diff != "" {
		t.Error(diff)
	}
	if _, err := a.Register(t.Context(), order("1.0.0", "echoes")); !errors.Is(err, ErrNewVersion) {
		t.Errorf("back to the old version: %v", err)
	}
	if got := r.Agents("Echo"); !slices.Equal(got, []string{"1.0.0 APPROVED", "1.1.0 APPROVED"}) {
		t.Errorf("there are %v", got)
	}
}

// TestSecondLogin: a login elsewhere ends the session. The account logs in once more, and recognizes a registry
// refusing it nevertheless.
func TestSecondLogin(t *testing.T) {
	r, s := registrytest.New(t), newMemory()
	a := account(t, r, s)
	must(t, a, order("1.0.0", "echoes"))
	r.LogInElsewhere()
	must(t, a, order("1.0.0", "echoes"))
	if n := r.LoggedIn(); n != 2 {
		t.Errorf("there were %d logins", n)
	}
	// Another gateway has a session already: it is used.
	b := account(t, r, s)
	r.LogInElsewhere()
	must(t, b, order("1.0.0", "echoes"))
	must(t, a, order("1.0.0", "echoes"))
	if n := r.LoggedIn(); n != 3 {
		t.Errorf("there were %d logins", n)
	}
	wrong := account(t, r, newMemory())
	wrong.login.(*Password).Secret = func() (string, error) { return "wrong", nil }
	if _, err := wrong.Register(t.Context(), order("1.0.0", "echoes")); !Is(err, Unauthorized) ||
		strings.Contains(err.Error(), "wrong\"") {
		t.Errorf("a wrong password: %v", err)
	}
}

// TestTwoGateways register at the same time.
func TestTwoGateways(t *testing.T) {
	r := registrytest.New(t)
	var both sync.WaitGroup
	for range 2 {
		a := account(t, r, newMemory()) // without a common storage: the registry alone holds them together
		both.Go(func() { _, _ = a.Register(t.Context(), order("1.0.0", "echoes")) })
	}
	both.Wait()
	must(t, account(t, r, newMemory()), order("1.0.0", "echoes"))
	if got := r.Agents("Echo"); !slices.Equal(got, []string{"1.0.0 PENDING"}) {
		t.Errorf("there are %v", got)
	}
}

// TestTake: only a version with an AIC takes the place of the current one, and no answer takes an AIC away.
func TestTake(t *testing.T) {
	old := Entry{ID: "1", Version: "1", Status: Approved, AIC: "A"}
	next := Entry{ID: "2", Version: "2", Status: Pending}
	with := func(e Entry, s Status, aic string) *Entry { e.Status, e.AIC = s, aic; return &e }
	for name, c := range map[string]struct {
		takes *Entry
		want  string
	}{
		"approved":                      {with(next, Approved, "B"), "2 approved B | - [A]"},
		"approved, and disabled since":  {with(next, Disabled, "B"), "2 disabled B | - [A]"},
		"disabled before its approval":  {with(next, Disabled, ""), "1 approved A | 2 disabled []"},
		"rejected":                      {with(next, Rejected, ""), "1 approved A | 2 rejected []"},
		"deleted":                       {with(next, Deleted, ""), "1 approved A | - []"},
		"the current one, disabled":     {with(old, Disabled, "A"), "1 disabled A | 2 pending []"},
		"the current one, without AIC":  {with(old, Disabled, ""), "1 disabled A | 2 pending []"},
		"the current one, once deleted": {with(old, Deleted, ""), "1 deleted A | 2 pending []"},
	} {
		current, waits := old, next
		r := Record{Current: &current, Next: &waits}
		r.take(c.takes)
		if got := fmt.Sprint(status(&r), " ", r.Former); strings.Join(strings.Fields(got), " ") != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// TestNoName: an ACS without a name or a version cannot be registered.
func TestNoName(t *testing.T) {
	a := account(t, registrytest.New(t), newMemory())
	for acs, want := range map[string]string{
		`{"name":"Echo"}`:     "the ACS has no name or no version",
		`{"version":"1.0.0"}`: "the ACS has no name or no version",
		`{`:                   "the ACS cannot be read: unexpected end of JSON input",
	} {
		if _, err := a.Register(t.Context(), Order{Partner: partner, ACS: json.RawMessage(acs)}); err == nil ||
			err.Error() != want {
			t.Errorf("%s: got %v", acs, err)
		}
	}
}
