// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// registrationPoll is the interval of looking at the progress of a registration.
const registrationPoll = 2 * time.Second

// registrationStatus shows the progress of registrations.
func registrationStatus(a *asking) func([]string) error {
	a.jsonFlag("")
	return func([]string) error {
		var list adminapi.RegistrationList
		raw, err := a.ask(a.route, a.query(a.route), nil, &list)
		if err != nil {
			return err
		}
		if a.asJSON {
			return a.print(raw, "")
		}
		if len(list.Registrations) == 0 {
			return a.print(nil, "No Partner has an AIC of a registry; set aic to registered.")
		}
		for i := range list.Registrations {
			if err := a.print(nil, registrationText(&list.Registrations[i])); err != nil {
				return err
			}
		}
		return nil
	}
}

// registrationText returns a registration for people, a line for each fact.
func registrationText(r *adminapi.Registration) string {
	var lines []string
	line := func(name, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%-9s ", name)+clean(fmt.Sprintf(format, args...)))
	}
	line("partner", "%s", r.URL)
	line("registry", "%s", orDash(r.Registry))
	version := func(name string, v *adminapi.RegisteredVersion) {
		if v == nil {
			return
		}
		line(name, "%s %s is %s", v.Name, v.Version, v.Status)
		if v.AIC != "" {
			line("aic", "%s", v.AIC)
		}
		if v.Ontology != "" {
			line("ontology", "%s", v.Ontology)
		}
		if v.Comments != "" {
			line("comments", "%s", v.Comments)
		}
	}
	version("current", r.Current)
	version("next", r.Next)
	if r.Current == nil && r.Next == nil {
		line("current", "nothing is registered")
	}
	if r.Current != nil && r.Used != r.Current.AIC {
		line("used", "%s; the AIC of the registry is used once the configuration is loaded again: run caddy reload --force",
			cmp.Or(r.Used, "none"))
	}
	if len(r.Former) > 0 {
		line("former", "%s", strings.Join(r.Former, " "))
	}
	if why := cmp.Or(r.Problem, r.Trouble); why != "" {
		line("problem", "%s", why)
	}
	if r.Login != nil {
		line("login", "%s", loginText(r.Login))
	}
	return strings.Join(lines, "\n")
}

func loginText(l *adminapi.RegistryLogin) string {
	if l.URL == "" {
		return "a person has to log in: run caddy aip acs register"
	}
	return fmt.Sprintf("open %s in a browser, and log in with the code %s, until %s", l.URL, l.Code, stamp(l.Until))
}

// registerPartner registers a Partner, and waits for the decision.
func registerPartner(a *asking) func([]string) error {
	var newVersion, resubmit, noWait bool
	a.Flags().BoolVar(&newVersion, "new-version", false, "register a version beside one that has an AIC")
	a.Flags().BoolVar(&resubmit, "resubmit", false, "submit again what was rejected, although it is unchanged")
	a.Flags().BoolVar(&noWait, "no-wait", false, "do not wait for the decision")
	a.jsonFlag(", of the registration at the end")
	return func([]string) error {
		order := adminapi.RegistrationOrder{Partner: a.text("partner"), NewVersion: newVersion, Resubmit: resubmit}
		r, err := a.submitted(&order)
		if err != nil {
			return err
		}
		if len(r.Depends) > 0 {
			a.say("On the AIC " + clean(r.Current.AIC) + " depend:\n  - " + clean(strings.Join(r.Depends, "\n  - ")))
		}
		if r.Problem != "" {
			return errors.Join(a.printRegistration(r), errors.New("it is not registered"))
		}
		for said := false; r.Next != nil && r.Next.Status == "pending" && !noWait; {
			if !said {
				said = true
				a.say(fmt.Sprintf("%s %s waits for a person of the registry %s; this may be interrupted, and begun again",
					clean(r.Next.Name), clean(r.Next.Version), clean(r.Registry)))
			}
			time.Sleep(registrationPoll)
			if r, err = a.registration(r); err != nil {
				return err
			}
		}
		if r.Next == nil && r.Current != nil && r.Current.Status == "approved" && r.Used != r.Current.AIC {
			if err := a.admin.reload(); err != nil {
				return fmt.Errorf("the AIC %s is assigned, but the configuration cannot be loaded again: %w", r.Current.AIC, err)
			}
			if r, err = a.reloaded(r); err != nil {
				return err
			}
		}
		if err := a.printRegistration(r); err != nil {
			return err
		}
		switch {
		case r.Next != nil && r.Next.Status == "pending":
			return nil
		case r.Next != nil:
			return fmt.Errorf("it is %s", r.Next.Status)
		case r.Current == nil || r.Current.Status != "approved":
			return errors.New("it is not registered")
		}
		return nil
	}
}

// say prints the progress for people.
func (a *asking) say(text string) {
	out := a.OutOrStdout()
	if a.asJSON {
		out = a.ErrOrStderr()
	}
	_, _ = fmt.Fprintln(out, text)
}

func (a *asking) printRegistration(r *adminapi.Registration) error {
	if a.asJSON {
		return printJSON(a.Command, r)
	}
	return a.print(nil, registrationText(r))
}

// submitted gives an order until it needs no login of a person any more.
func (a *asking) submitted(order *adminapi.RegistrationOrder) (*adminapi.Registration, error) {
	for shown := ""; ; {
		r := new(adminapi.Registration)
		if _, err := a.admin.ask(http.MethodPost, a.route.Path, nil, order, r); err != nil || r.Login == nil {
			return r, err
		}
		if r.Login.Code != shown {
			shown = r.Login.Code
			text := loginText(r.Login)
			a.say(strings.ToUpper(text[:1]) + clean(text[1:]))
		}
		time.Sleep(registrationPoll)
	}
}

// registration returns a registration as it is now.
func (a *asking) registration(r *adminapi.Registration) (*adminapi.Registration, error) {
	var list adminapi.RegistrationList
	_, err := a.admin.ask(http.MethodGet, a.route.Path, url.Values{"partner": {r.URL}}, nil, &list)
	switch {
	case err != nil:
		return nil, err
	case len(list.Registrations) != 1:
		return nil, errors.New("the Partner is no longer in the configuration")
	}
	return &list.Registrations[0], nil
}

// reloaded returns a registration after a reload. During the reload the admin API may be away for a moment.
func (a *asking) reloaded(r *adminapi.Registration) (found *adminapi.Registration, err error) {
	for range 5 {
		if found, err = a.registration(r); err == nil {
			return found, nil
		}
		time.Sleep(registrationPoll / 10)
	}
	return nil, err
}

// withdrawPartner takes a registration back.
func withdrawPartner(a *asking) func([]string) error {
	remove := a.Flags().Bool("delete", false, "delete it for ever")
	withdrawal := func(a *asking, _ url.Values, _ []string) (any, error) {
		return adminapi.Withdrawal{Partner: a.text("partner"), AIC: a.text("aic"), Delete: *remove}, nil
	}
	return action(withdrawal, sayWithdrawn)(a)
}

func sayWithdrawn(r *adminapi.Registration) (string, error) {
	if r.Problem != "" || r.Login != nil {
		return registrationText(r), errors.New("nothing is withdrawn")
	}
	return registrationText(r), nil
}

// reload loads the running configuration again.
func (f *adminFlags) reload() error {
	var config json.RawMessage
	if _, err := f.ask(http.MethodGet, "/config/", nil, nil, &config); err != nil {
		return err
	}
	// Without this header, Caddy does nothing for an unchanged configuration.
	header := http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"must-revalidate"}}
	res, err := f.send(http.MethodPost, "/load", header, bytes.NewReader(config))
	if err != nil {
		return err
	}
	return res.Body.Close()
}
