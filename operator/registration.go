// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/acps/registry"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// registrationTimeout is how long the registry and the agent may take for one request of an operator.
const registrationTimeout = 2 * time.Minute

// shownWithin is how old what an operator is shown may be.
const shownWithin = 10 * time.Second

// registrations answers with what the gateway knows of registrations, or registers a Partner.
func registrations(a *Admin, r *http.Request) (any, error) {
	if r.Method == http.MethodPost {
		return registerPartner(a, r)
	}
	only, list := r.URL.Query().Get("partner"), adminapi.RegistrationList{Registrations: []adminapi.Registration{}}
	for _, one := range a.current().Registrants {
		if only != "" && only != one.Partner.Name && only != one.URL {
			continue
		}
		ctx, cancel := context.WithTimeout(r.Context(), registrationTimeout)
		record, err := one.Account.Poll(ctx, one.URL, shownWithin)
		cancel()
		list.Registrations = append(list.Registrations, registrationOf(one, record, err))
	}
	if only != "" && len(list.Registrations) == 0 {
		return nil, errUnknownPartner(only)
	}
	return list, nil
}

func registerPartner(a *Admin, r *http.Request) (any, error) {
	if r.URL.RawQuery != "" { // its Partner would not be the one that is registered
		return nil, task.Errorf(task.InvalidParams, "a registration has no query; name the Partner in the body")
	}
	var order adminapi.RegistrationOrder
	if err := readOrder(r, &order); err != nil {
		return nil, err
	}
	one, err := a.registrant(order.Partner)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(registry.Asking(r.Context()), registrationTimeout)
	defer cancel()
	record, err := one.Register(ctx, &order)
	if record == nil {
		return nil, task.Errorf(task.UnsupportedOperation, "%v", err)
	}
	out := registrationOf(one, record, err)
	if record.AIC() != "" && (errors.Is(err, registry.ErrNewVersion) || order.NewVersion) {
		out.Depends = a.dependents(one, record.AIC())
	}
	return out, nil
}

// withdraw takes a registration back.
func withdraw(a *Admin, r *http.Request) (any, error) {
	var what adminapi.Withdrawal
	if err := readOrder(r, &what); err != nil {
		return nil, err
	}
	one, err := a.registrant(what.Partner)
	if err != nil {
		return nil, err
	}
	if what.AIC != "" && !what.Delete {
		return nil, task.Errorf(task.InvalidParams, "what has an AIC can only be deleted for ever; say so by --delete")
	}
	ctx, cancel := context.WithTimeout(registry.Asking(r.Context()), registrationTimeout)
	defer cancel()
	record, err := one.Account.Withdraw(ctx, one.URL, what.AIC, what.Delete)
	return registrationOf(one, record, err), nil
}

// readOrder reads a body, which may be empty.
func readOrder(r *http.Request, into any) error {
	d := json.NewDecoder(io.LimitReader(r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return task.Errorf(task.InvalidParams, "the body cannot be read: %v", err)
	}
	return nil
}

// registrant returns the one with a name, or the only one.
func (a *Admin) registrant(name string) (*Registrant, error) {
	all, stored := a.current().Registrants, a.partnerOf(name)
	for _, one := range all {
		if one.Partner.Name == stored || name != "" && one.URL == name {
			return one, nil
		}
	}
	switch {
	case name != "":
		return nil, task.Errorf(task.UnsupportedOperation, "the Partner %q has no AIC of the registry; set aic to registered",
			name)
	case len(all) == 0:
		return nil, task.Errorf(task.UnsupportedOperation, "no Partner has an AIC of the registry; set aic to registered")
	case len(all) > 1:
		names := make([]string, len(all))
		for i, one := range all {
			names[i] = one.URL
		}
		return nil, task.Errorf(task.InvalidParams, "several Partners are registered; say which by --partner: %s",
			strings.Join(names, ", "))
	}
	return all[0], nil
}

// registrationOf returns a registration as the admin API answers it. err is why it does not go on.
func registrationOf(of *Registrant, r *registry.Record, err error) adminapi.Registration {
	out := adminapi.Registration{Partner: of.Partner.Name, URL: of.URL, Used: of.Partner.AIC}
	if r != nil {
		out.Registry, out.Former, out.Asked, out.Trouble = r.Registry, r.Former, r.Asked, r.Trouble
		out.Current, out.Next = versionOf(r.Current), versionOf(r.Next)
	}
	if login, ok := errors.AsType[*registry.LoginError](err); ok {
		out.Login = &adminapi.RegistryLogin{URL: login.URL, Code: login.Code, Until: login.Until}
		out.Trouble = ""
	} else if err != nil {
		out.Problem, out.Trouble = advisedOnRegistry(err), ""
	}
	return out
}

func versionOf(e *registry.Entry) *adminapi.RegisteredVersion {
	if e == nil {
		return nil
	}
	return &adminapi.RegisteredVersion{ID: e.ID, Name: e.Name, Version: e.Version, Status: string(e.Status),
		Comments: e.Comments, AIC: e.AIC, Ontology: e.Ontology, Submitted: e.Submitted, Processed: e.Processed}
}

// advisedOnRegistry returns an error of a registration with what to do.
func advisedOnRegistry(err error) string {
	advice := ""
	switch {
	case errors.Is(err, registry.ErrNewVersion):
		advice = "an approved ACS can never change, and a new version gets another AIC: if that is meant, say --new-version"
	case errors.Is(err, registry.ErrTaken):
		advice = "two Partners of one user need two names, or two versions: change them in the agent's card, or the " +
			"version in card"
	case errors.Is(err, registry.ErrNoNames):
		advice = "leave ontology out of registry, so that the Partner is registered as an agent"
	case errors.Is(err, registry.ErrChanged):
		advice = "undo the change, or raise the version, in the agent's card or by version in card, and register it with " +
			"--new-version: it gets another AIC"
	case errors.Is(err, registry.ErrRejected):
		advice = "change what the comments say, or submit it unchanged by --resubmit"
	case errors.Is(err, registry.ErrPendingOther):
		advice = "wait for the decision, or take it back by caddy aip acs withdraw, and register again"
	case errors.Is(err, registry.ErrUnfinished):
		advice = "give the Partner that version, or delete it by caddy aip acs withdraw --delete"
	case registry.Is(err, registry.Unauthorized):
		advice = "check the user and the password of registry, or its oidc"
	case registry.Is(err, registry.Gone):
		advice = "use oidc in registry"
	case registry.Is(err, registry.Forbidden):
		advice = "the name may be another user's: change it in the agent's card, or use the user of registry who owns it"
	case registry.IsTransient(err):
		advice = "check the url and the ca of registry; the same command goes on where it was"
	}
	if advice == "" {
		return err.Error()
	}
	return fmt.Sprintf("%v; %s", err, advice)
}

// dependents returns what depends on an AIC of a Partner, as far as the gateway knows it.
func (a *Admin) dependents(of *Registrant, aic string) []string {
	list := []string{
		"the tasks that are stored under it: with another AIC, the Partner no longer finds them",
		"its certificates: each names the AIC, and other ones are needed",
		"Leaders, and their lists of whom they may call: the old AIC stays registered until it is withdrawn",
	}
	if of.HasAIC {
		list = append(list, "the Partner's URL, in which it stands")
	}
	groups := 0
	all := a.Groups.List()
	for i := range all {
		if all[i].Partner == aic {
			groups++
		}
	}
	if groups > 0 {
		list = append(list, fmt.Sprintf("groups in which the Partner takes part under it: %d", groups))
	}
	return append(list, of.NamedBy(aic)...)
}
