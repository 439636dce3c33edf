// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/front/group"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/translate/aip/acs"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// A Partner has two names. Its tasks are stored under the one that name returns, its AIC as a rule. The other one, the
// title, is for people: it is shown wherever a person reads, and taken wherever a person types. All mounts of a Partner
// have one title. The configuration alone says it when it is loaded, and the agent's card does not change it: the
// metrics have it as a label.

// maxTitle is the greatest length of a title, in bytes.
const maxTitle = 64

// titleForm is what a title that is configured looks like, so that it needs no quotes where it is typed.
var titleForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// checkTitle checks the name that is configured, if there is one.
func (g *Gateway) checkTitle() error {
	if g.Name == "" {
		return nil
	}
	if err := conf.Literal("name", g.Name); err != nil {
		return err
	}
	if len(g.Name) > maxTitle || !titleForm.MatchString(g.Name) {
		return fmt.Errorf("name: %q must be at most %d letters, digits, dots, dashes and underscores, and begin with a "+
			"letter or a digit", g.Name, maxTitle)
	}
	return nil
}

// checkTitles refuses a name that two Partners of a configuration have, and two names of one.
func checkTitles(one, two *Gateway) error {
	switch same := one.name() == two.name(); {
	case one.Name == "" || two.Name == "":
	case same && one.Name != two.Name:
		return fmt.Errorf("two aip_gateway handlers answer under %q but have the names %s and %s; give them one name",
			one.name(), one.Name, two.Name)
	case !same && one.Name == two.Name:
		return fmt.Errorf("two aip_gateway handlers have the name %s but are different Partners; give each its own name",
			one.Name)
	}
	return nil
}

// title returns the Partner's name for people. Until App.Start has assigned them all, another one may have it, too.
func (g *Gateway) title() string {
	if t := g.assigned.Load(); t != nil {
		return *t
	}
	if g.Name != "" {
		return g.Name
	}
	return g.defaultTitle()
}

// defaultTitle returns the name of a Partner that has none in the configuration: that in its registered card, else the
// path under which it is mounted, else where its agent is.
func (g *Gateway) defaultTitle() string {
	if g.Card.Registered != "" {
		if name, err := conf.FileName(caddy.NewReplacer(), g.Card.Registered); err == nil {
			var card struct{ Name string }
			if text, err := acs.ReadFile(name); err == nil && json.Unmarshal(text, &card) == nil && card.Name != "" {
				return shortTitle(card.Name)
			}
		}
	}
	if path := strings.Trim(g.BasePath, "/"); path != "" {
		return shortTitle(path)
	}
	agent := g.Agent.Name()
	if u, err := url.Parse(agent); err == nil && u.Host != "" {
		agent = strings.TrimSuffix(u.Host+u.Path, "/")
	}
	return shortTitle(agent)
}

// shortTitle returns a foreign text as a title.
func shortTitle(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxTitle {
		s = strings.TrimSpace(strings.ToValidUTF8(s[:maxTitle], ""))
	}
	return s
}

// cardName returns the name of the Partner in a card that is made without one of the agent: the one that is configured,
// or the path under which it is mounted. The host of the agent, which a title may have, is private.
func (g *Gateway) cardName() string { return cmp.Or(g.Name, strings.Trim(g.BasePath, "/")) }

// assignTitles gives each Partner a title that no other one has. Which of several Partners with the same default has a
// number does not depend on the order in which they were loaded. The caller holds a.mu, or is the only one that has a.
func (a *App) assignTitles() {
	titles, taken := make(map[string]string), make(map[string]bool) // the first by Partner
	members := slices.SortedFunc(slices.Values(a.members), func(g, h *Gateway) int {
		return cmp.Or(cmp.Compare(g.name(), h.name()), cmp.Compare(h.BasePath, g.BasePath)) // a mount at a path first
	})
	for _, g := range members {
		if g.Name != "" {
			titles[g.name()], taken[g.Name] = g.Name, true
		}
	}
	for _, g := range members {
		if titles[g.name()] != "" {
			continue
		}
		first := g.defaultTitle()
		title := first
		for i := 2; taken[title]; i++ {
			title = first + "-" + strconv.Itoa(i)
		}
		titles[g.name()], taken[title] = title, true
	}
	for _, g := range members {
		title := titles[g.name()]
		g.assigned.Store(&title)
	}
}

// aicsOf returns the AICs of handlers.
func aicsOf(members []*Gateway) (all []string) {
	for _, g := range members {
		all = append(all, g.AIC)
	}
	return all
}

// partnersOf returns the Partners of handlers that have their titles.
func partnersOf(members []*Gateway) (all node.Partners) {
	for _, g := range members {
		p := &node.Partner{Name: g.name(), Title: g.title(), AIC: g.AIC, Agent: g.Agent.Name(),
			URL: g.mountURL(), PublicURL: g.publicURL(), Assignee: g.Agent.Assignee(),
			Confirm: g.Completion == completionConfirm, MaxRuns: g.Agent.MaxRuns,
			Memory: limit.Limits{Total: g.Limits.Memory, PerLeader: g.Limits.MemoryPerLeader()},
			Check:  time.Duration(g.Agent.Check), Compared: g.compared,
			Gateway: g.gateway, Policy: g.policy, AAC: g.aac, Issuers: g.verifiers(),
			Group: g.groupConfig(), Permits: g.permits}
		if g.speaksAUN() {
			p.AID = g.aid()
		}
		all = append(all, p)
	}
	return all
}

// groupConfig returns how the Partner takes part in groups; nil if it does not, or has no AIC.
func (g *Gateway) groupConfig() *group.Config {
	of := g.Group
	if of == nil || g.AIC == "" {
		return nil
	}
	return &group.Config{
		Name: g.name(), AIC: g.AIC, Gateway: g.gateway,
		Brokers: of.brokers, Inbox: of.inbox, InboxWithoutUserID: of.InboxWithoutUserID, Exchanges: of.AllowExchanges,
		Egress: of.egress(g.app.Notify.Guard()), TLS: of.tls, Key: of.key,
		MaxGroups: of.MaxGroups, MaxGroupsPerLeader: min(of.MaxGroups, group.DefaultMaxGroupsPerLeader),
		Prefetch: group.DefaultPrefetch, ExchangeWait: group.DefaultExchangeWait,
		Log:    logOf("aip.group"), // memberships outlive the configuration
		Access: g.siteAccessLog(),
	}
}

// readIdentitySets reads a block whose lines are the ids of an agent each.
func readIdentitySets(p *conf.Parser, into *map[string]Names) {
	sets := make(map[string]Names)
	for nesting := p.Nesting(); p.Failed() == nil && p.NextBlock(nesting); {
		first, others := p.Val(), p.RemainingArgs()
		switch _, twice := sets[first]; {
		case len(others) == 0:
			p.Fail("each line of identities needs an AIC and its AID, or other ids of the same agent")
		case twice:
			p.Fail(first + " is given twice in identities")
		default:
			sets[first] = others
		}
	}
	*into = sets
}

// readIdentities reads the sets of ids of the configuration.
func readIdentities(sets map[string]Names) (*identity.Identities, error) {
	all := new(identity.Identities)
	for _, name := range slices.Sorted(maps.Keys(sets)) { // so that an error is always the same
		leader, err := leaderOf(name, true)
		if err != nil {
			return nil, fmt.Errorf("identities: %q: %w", name, err)
		}
		for _, other := range sets[name] {
			joined, err := leaderOf(other, false)
			if err == nil {
				err = all.Join(leader, joined)
			}
			if err != nil {
				return nil, fmt.Errorf("identities: %q: %w", other, err)
			}
		}
	}
	return all, nil
}

// leaderOf reads a name of a Leader. Without a prefix it is an AIC where it comes first, and else an AID.
func leaderOf(name string, first bool) (string, error) {
	kind, id := identity.SplitLeader(name)
	switch kind {
	case identity.KeyKind:
		if id == "" {
			return "", fmt.Errorf("%q names no key", name)
		}
		return name, nil
	case identity.JWTKind:
		issuer, subject, _ := strings.Cut(id, "|")
		if issuer == "" || identity.CheckSubject(subject) != nil {
			return "", fmt.Errorf("%q is not jwt:<issuer>|<name>, with a name of 1 to 255 bytes", name)
		}
		return name, nil
	case identity.AICKind:
		aic, err := identity.ParseAIC(id)
		if err == nil || first {
			return string(aic), err
		}
	}
	aid, err := aun.ParseAID(id)
	return identity.Peer{Kind: identity.AIDKind, ID: string(aid)}.Leader(), err
}

// checkAID checks the setting aid, which is then in its canonical form.
func (g *Gateway) checkAID() error {
	if g.AID == "" {
		return nil
	}
	if err := conf.Literal("aid", g.AID); err != nil {
		return err
	}
	aid, err := aun.ParseAID(g.AID)
	if err != nil {
		return fmt.Errorf("aid: %w", err)
	}
	g.AID = string(aid)
	return nil
}

// speaksAUN reports whether AUN clients reach the Partner.
func (g *Gateway) speaksAUN() bool { return slices.Contains(g.Callers, codec.Name) }

// checkAUN checks what AUN clients need.
func (g *Gateway) checkAUN() error {
	switch {
	case g.Agent.Assignee() != "" && g.app.AUN == nil:
		return errors.New("agent: aun-assignee needs the option aun of the global option aip")
	case !g.speaksAUN():
	case g.app.AUN == nil:
		return errors.New("callers: aun needs the option aun of the global option aip")
	case g.aid() == "":
		return errors.New("callers: aun needs an aid, by which clients address the Partner")
	}
	return nil
}
