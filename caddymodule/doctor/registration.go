// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/acps/registry"
	"github.com/aip-gateway/aip-gateway/trust/token"
)

// registration says how far the registration of a Partner is, by the record that is kept of it. The registry is not
// asked.
func (e *examination) registration(r *Registration) {
	if r == nil {
		return
	}
	say := func(s Status, format string, args ...any) {
		e.add(CheckRegistration, s, r.At, fmt.Sprintf(format, args...))
	}
	if r.Err != nil {
		say(Broken, "what is registered cannot be read: %v; correct storage, and who may read it", r.Err)
		return
	}
	now, next := r.Record.Current, r.Record.Next
	switch {
	case now != nil && now.Status != registry.Approved:
		say(Broken, "the AIC %s is %s: %s; ask the person of the registry who has done it", now.AIC, now.Status,
			cmp.Or(now.Comments, "no reason is given"))
	case r.AtMount:
		say(Warning, "%s; %s", AtMount, RegisterAnew)
	case now != nil:
		say(OK, "the AIC is %s", now.AIC)
	case next == nil:
		say(Warning, "the Partner is not registered, and has no AIC; run caddy aip acs register")
	}
	if next == nil {
		return
	}
	switch next.Status {
	case registry.Pending:
		say(Warning, "version %s waits for a person of the registry since %s", next.Version,
			next.Submitted.UTC().Format(time.RFC3339))
	case registry.Rejected:
		say(Broken, "the registry has rejected version %s: %s; change it, and run caddy aip acs register",
			next.Version, next.Comments)
	default:
		say(Warning, "version %s is %s; run caddy aip acs register", next.Version, next.Status)
	}
}

// acs says whether the ACS of a Partner is the one that is registered.
func (e *examination) acs(ctx context.Context, m *Mount) {
	if m.ACS == NoACSCheck {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	if m.ACS == DraftedACS {
		e.draft(ctx, m)
		return
	}
	mistakes, compared, err := m.Gateway.ExamineACS(ctx)
	if err != nil {
		e.add(CheckACS, Warning, m.Title, "it cannot be compared with the one that is registered: "+
			Explained(err))
	}
	for _, mistake := range mistakes {
		e.add(CheckACS, Warning, m.Title, "a registry would refuse it: "+mistake.String())
	}
	if compared.AtMount {
		e.add(CheckACS, Warning, m.Title, AtMount+"; "+RegisterAnew)
	}
	if len(compared.Differences) > 0 {
		e.add(CheckACS, Warning, m.Title, "it is not the one that is registered: they differ at "+
			strings.Join(compared.Differences, ", ")+"; "+otherACS)
	} else if err == nil && len(mistakes) == 0 && !compared.AtMount {
		e.add(CheckACS, OK, m.Title, "it is the one that is registered")
	}
}

// draft says what a registry would refuse in the ACS by which a Partner is to be registered.
func (e *examination) draft(ctx context.Context, m *Mount) {
	_, mistakes, err := m.Gateway.DraftACS(ctx, m.Registration.At)
	switch {
	case err != nil:
		e.add(CheckACS, Warning, m.Title, "it cannot be made: "+Explained(err))
	case len(mistakes) == 0:
		e.add(CheckACS, OK, m.Title, "a registry would take it, as far as that is known here")
	}
	for _, mistake := range mistakes {
		e.add(CheckACS, Broken, m.Title, "a registry would refuse it: "+mistake.String())
	}
}

// issuers says whether the keys of the issuers of tokens can be fetched, and used.
func (e *examination) issuers(ctx context.Context, all token.Verifiers) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	for _, v := range all {
		switch h := v.Fetch(ctx); {
		case h.Keys > 0:
			e.add(CheckIssuer, OK, h.Issuer, fmt.Sprintf("it publishes %d keys", h.Keys))
		case h.Others > 0:
			e.add(CheckIssuer, Broken, h.Issuer, fmt.Sprintf("none of the %d keys that it publishes is for %s, "+
				"so its tokens are refused; set algorithms", h.Others, strings.Join(v.Algorithms(), " or ")))
		default:
			e.add(CheckIssuer, Broken, h.Issuer, fmt.Sprintf("its keys cannot be fetched, so its tokens are "+
				"refused: %v", h.Err))
		}
	}
}
