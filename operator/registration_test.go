// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/acps/registry"
	"github.com/aip-gateway/aip-gateway/acps/registry/registrytest"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// keptInMemory is the storage of an account.
type keptInMemory map[string][]byte

func (keptInMemory) Lock(context.Context, string) error { return nil }

func (keptInMemory) Unlock(context.Context, string) error { return nil }

func (k keptInMemory) Load(_ context.Context, key string) ([]byte, error) {
	if value, ok := k[key]; ok {
		return value, nil
	}
	return nil, fs.ErrNotExist
}

func (k keptInMemory) Store(_ context.Context, key string, value []byte) error {
	k[key] = value
	return nil
}

// TestRegistration: a Partner is registered, its registration is followed to its AIC, and a new version says what
// depends on the AIC before.
func TestRegistration(t *testing.T) {
	p, r := newAlone(t, nil), registrytest.New(t)
	client, err := registry.New(registry.Config{URL: r.URL})
	if err != nil {
		t.Fatal(err)
	}
	account := registry.NewAccount(client, &registry.Password{Client: client, User: registrytest.User,
		Secret: func() (string, error) { return registrytest.Password, nil }}, make(keptInMemory))
	const of, unready = "https://maps.example/{AIC}", "the agent shows no card"
	version, refuse := "1.0.0", false
	one := &Registrant{Partner: p.partner(), URL: of, Account: account, HasAIC: true,
		NamedBy: func(aic string) []string { return []string{"the line with " + aic[:1]} },
		Register: func(ctx context.Context, order *adminapi.RegistrationOrder) (*registry.Record, error) {
			if refuse {
				return nil, errors.New(unready)
			}
			return account.Register(ctx, registry.Order{Partner: of, NewVersion: order.NewVersion, Resubmit: order.Resubmit,
				Differs: func(json.RawMessage) (bool, error) { return true, nil },
				ACS: []byte(`{"aic":"unassigned","name":"Maps","version":"` + version + `","endPoints":[{"url":"` + of +
					`"}]}`)})
		}}
	p.refuses(map[string]string{
		"POST /aip/registrations": "Conflict: no Partner has an AIC of the registry; set aic to registered",
		"POST /aip/registrations []": "Bad Request: the body cannot be read: json: cannot unmarshal array into Go value " +
			"of type adminapi.RegistrationOrder",
	})
	p.has.Registrants = []*Registrant{one}

	post := func(body string) (got adminapi.Registration) {
		t.Helper()
		p.ask("POST", adminapi.Registrations, body, &got)
		return got
	}
	if got := post(`{"partner":"maps"}`); got.Next == nil || got.Next.Status != "pending" || got.Problem != "" ||
		got.URL != of || got.Partner != "P" {
		t.Errorf("after the registration: %+v", got)
	}
	aic := r.Process("Maps", "1.0.0", true, "")
	if _, err := account.Poll(t.Context(), of, 0); err != nil { // an operator is shown what is 10 s old
		t.Fatal(err)
	}
	var list adminapi.RegistrationList
	p.ask("GET", adminapi.Registrations+"?partner=maps", "", &list)
	if len(list.Registrations) != 1 || list.Registrations[0].Current == nil || list.Registrations[0].Current.AIC != aic {
		t.Errorf("after the approval: %+v", list)
	}
	version = "2.0.0"
	got := post(`{"partner":"` + of + `"}`)
	if !strings.Contains(got.Problem, "say --new-version") || len(got.Depends) != 5 ||
		got.Depends[3] != "the Partner's URL, in which it stands" || got.Depends[4] != "the line with "+aic[:1] {
		t.Errorf("a new version: %q, depends %q", got.Problem, got.Depends)
	}
	if got := post(`{"new_version":true}`); got.Problem != "" || got.Next == nil {
		t.Errorf("a new version that is meant: %+v", got)
	}
	var back adminapi.Registration
	if p.ask("POST", adminapi.Withdraw, `{}`, &back); back.Problem != "" || back.Next == nil ||
		back.Next.Status != "draft" {
		t.Errorf("taken back: %+v", back)
	}
	refuse = true
	p.refuses(map[string]string{
		"POST /aip/registrations": "Conflict: " + unready,
		`POST /aip/registrations {"partner":"Q"}`: `Conflict: the Partner "Q" has no AIC of the registry; set aic ` +
			"to registered",
		"GET /aip/registrations?partner=Q":         `Conflict: the Partner "Q" is not in the configuration`,
		`POST /aip/registrations/withdraw {"a":1}`: `Bad Request: the body cannot be read: json: unknown field "a"`,
		`POST /aip/registrations/withdraw {"aic":"A"}`: "Bad Request: what has an AIC can only be deleted for ever; " +
			"say so by --delete",
	})
	two := *one
	two.URL, p.has.Registrants = "https://two.example", append(p.has.Registrants, &two)
	p.refuses(map[string]string{
		"POST /aip/registrations": "Bad Request: several Partners are registered; say which by --partner: " + of +
			", https://two.example",
	})
}

// TestAdvisedOnRegistry: an error of a registration says what to do.
func TestAdvisedOnRegistry(t *testing.T) {
	for err, want := range map[error]string{
		registry.ErrNewVersion:   "say --new-version",
		registry.ErrTaken:        "two names, or two versions",
		registry.ErrNoNames:      "leave ontology out",
		registry.ErrChanged:      "undo the change",
		registry.ErrRejected:     "by --resubmit",
		registry.ErrPendingOther: "caddy aip acs withdraw",
		registry.ErrUnfinished:   "give the Partner that version",
		fs.ErrClosed:             fs.ErrClosed.Error(),
	} {
		if got := advisedOnRegistry(fmt.Errorf("it failed: %w", err)); !strings.Contains(got, want) {
			t.Errorf("%v: %s", err, got)
		}
	}
	login := &registry.LoginError{URL: "https://login.example", Code: "ABCD", Until: time.Unix(1, 0)}
	of := &Registrant{Partner: newAlone(t, nil).partner(), URL: "u"}
	got := registrationOf(of, &registry.Record{Trouble: "hidden", Registry: "r"}, login)
	want := adminapi.Registration{Partner: "P", URL: "u", Used: "A.1", Registry: "r",
		Login: &adminapi.RegistryLogin{URL: login.URL, Code: login.Code, Until: login.Until}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a login (-want +got):\n%s", diff)
	}
}
