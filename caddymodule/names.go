// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/translate/aip/acs"
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
			Memory: limit.Limits{Total: g.Limits.Memory, PerLeader: g.Limits.memoryPerLeader()},
			Check:  time.Duration(g.Agent.Check), Compared: g.compared,
			Gateway: g.gateway, Policy: g.policy, AAC: g.aac, Issuers: g.verifiers(),
			Group: g.Group.config(g), Permits: g.permits}
		if g.speaksAUN() {
			p.AID = g.aid()
		}
		all = append(all, p)
	}
	return all
}
