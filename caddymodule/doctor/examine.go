// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/identity"
)

// Timeout is how long an agent or a broker may take to answer an examination.
const Timeout = 5 * time.Second

// examination collects findings.
type examination struct{ findings []Finding }

func (e *examination) add(check string, s Status, subject, text string) {
	e.findings = append(e.findings, Finding{check, s, subject, text})
}

// Examine examines a Setup, whose Mounts are the Partners. It sends agents only requests that change nothing, but for
// the try.
func (s *Setup) Examine(ctx context.Context, partners []Partner, try Try) []Finding {
	var e examination
	e.store(s.Store)
	tried := e.tried(s.Mounts, try)
	for i := range s.Obtained {
		e.obtained(&s.Obtained[i], time.Now())
	}
	asked := make(map[string]bool) // the agents, by the names of their Partners
	for i := range s.Mounts {
		m, p := &s.Mounts[i], &partners[i]
		if m.Err != nil {
			e.add(CheckConfiguration, Broken, m.Title, Advised(m.Err).Error())
			continue
		}
		e.clientAuth(m, p)
		if !p.ShowsAIC && m.NeedsAIC {
			e.add(CheckAIC, Warning, m.Title, "the Partner has no aic, and its site shows no certificate with one: Leaders of "+
				"AIP 2 refuse its answers; "+SetAIC)
		}
		if m.Logged != "" {
			e.add(CheckKeys, Warning, m.Title, "callers send keys or tokens in the header "+m.Logged+
				", which the access log of the site shows; "+HideSecrets(m.Logged))
		}
		if !asked[m.Partner] {
			asked[m.Partner] = true
			e.agent(ctx, m, p.Served)
			if try.Text != "" && m.Partner == tried {
				e.try(ctx, m, try.Text)
			}
		}
		e.registration(m.Registration)
		e.acs(ctx, m)
		e.brokers(ctx, m)
		e.issuers(ctx, m.Issuers)
		e.policy(ctx, m, s.InMemory)
	}
	for _, list := range s.Lists {
		e.revocation(list, time.Now())
	}
	doors := s.doors()
	for i, other := range SharedTasks(doors) {
		e.add(CheckClientAuth, Warning, s.Mounts[i].Title, fmt.Sprintf("identity is off at %s/, and %s at %s/, "+
			"which has the same tasks, so that everyone can read them; %s", doors[i].Path, other.Mode, other.Path,
			SeparateTasks))
	}
	return e.findings
}

// store says whether a store can be used.
func (e *examination) store(s Store) {
	if s.Driver == nil {
		return
	}
	switch err := s.Driver.Examine(); {
	case errors.As(err, new(*UncheckedError)):
		e.add(CheckStore, Warning, s.Location, err.Error())
	case err != nil:
		e.add(CheckStore, Broken, s.Location, err.Error())
	default:
		e.add(CheckStore, OK, s.Location, "it can be written")
	}
}

// clientAuth says whether the site asks Leaders for what identity needs.
func (e *examination) clientAuth(m *Mount, p *Partner) {
	verifies := slices.ContainsFunc(p.Policies, VerifiesClients)
	requires := verifies
	for _, policy := range p.Policies {
		if policy.ClientAuthentication == nil && len(policy.MatchersRaw) == 0 {
			continue // Caddy adds it, for names that are of no site
		}
		requires = requires && RequiresClients(policy)
	}
	switch mode := identity.Mode(m.Mode); {
	case mode == identity.Off:
		e.add(CheckClientAuth, Warning, m.Title,
			"identity is off, so that every caller is believed to be the Leader it names; set identity to required")
	case m.OnlyAUN || m.OtherProofs && !requires:
	case m.OtherProofs:
		e.add(CheckClientAuth, Warning, m.Title, "identity has other proofs than certificates, but the site "+
			"refuses callers without a certificate; set mode verify_if_given in client_auth")
	case mode == identity.Required && !verifies:
		e.add(CheckClientAuth, Broken, m.Title,
			"identity is required, but the site verifies no client certificates, so that every call is refused; "+
				NeedsClientAuth)
	case mode == identity.Optional && requires:
		e.add(CheckClientAuth, Warning, m.Title, "identity is optional, but the site refuses callers "+
			"without a certificate; set mode verify_if_given in client_auth, or identity to required")
	default:
		e.add(CheckClientAuth, OK, m.Title, "the site's client_auth fits identity "+m.Mode)
	}
}

// doors returns the Doors of the Mounts, which are empty for those that are refused.
func (s *Setup) doors() []Door {
	doors := make([]Door, len(s.Mounts))
	for i := range s.Mounts {
		doors[i] = s.Mounts[i].Door
	}
	return doors
}

// SeparateTasks is what gives a Door with identity off tasks of its own.
const SeparateTasks = "set its identity to that of the other mount, or give this one another aic, " +
	"so that it has tasks of its own"

// SharedTasks returns the Doors whose callers are believed, by their index, each with another Door of the same Partner
// where callers prove who they are: the tasks are the same.
func SharedTasks(doors []Door) iter.Seq2[int, Door] {
	return func(yield func(int, Door) bool) {
		for i, d := range doors {
			other := slices.IndexFunc(doors, func(o Door) bool { return o.Partner == d.Partner && o.Mode != d.Mode })
			if d.Mode == string(identity.Off) && other >= 0 && !yield(i, doors[other]) {
				return
			}
		}
	}
}
