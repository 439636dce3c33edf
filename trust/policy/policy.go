// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// Rule allows or denies the calls under its conditions.
type Rule struct {
	Name  string // for logs; default: its number
	Deny  bool
	Match Match
}

// Config is the configuration of a Policy.
type Config struct {
	// Rules are asked in this order. None: all calls are allowed.
	Rules []Rule
	// DryRun has no rule refuse a call: possible refusals are logged and counted.
	DryRun bool
	// Further is asked about each call let in by the rules and the quotas; nil for nothing. An error refuses the call: the
	// error of ctx, or the cause of the refusal, for the log.
	Further func(ctx context.Context, c *Call) error
	Quotas  []Quota

	// Ready waits until the policy is open; nil if it is. An error refuses the call.
	Ready func(context.Context) error

	Partner string // its name, the key of a quota of an agent
	Names   Names  // for conditions
	Meter   *Meter
	Log     *slog.Logger
}

// Policy decides about calls. It may be used by any number of goroutines at once.
type Policy struct {
	config Config
	rules  []rule
	quotas []limited
}

type rule struct {
	name    string
	deny    bool
	matches matcher
	counts  *decisions
}

// limited is a quota, and its counts.
type limited struct {
	*Quota
	matches matcher
	account *account // set by Open
	counts  *decisions
}

// New checks the configuration of a policy. A policy with quotas must be opened before Config.Ready returns.
func New(c Config) (*Policy, error) {
	p := &Policy{config: c}
	names := make(map[string]bool)
	allows := len(c.Rules) == 0
	for i := range c.Rules {
		r := &c.Rules[i]
		if r.Name == "" {
			r.Name = strconv.Itoa(i + 1)
		}
		if err := checkName(r.Name); err != nil {
			return nil, err
		}
		if names[r.Name] {
			return nil, fmt.Errorf("two rules have the name %s", r.Name)
		}
		names[r.Name] = true
		matches, err := r.Match.compile(c.Names, !r.Deny)
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", r.Name, err)
		}
		allows = allows || !r.Deny
		p.rules = append(p.rules, rule{r.Name, r.Deny, matches, c.Meter.rules.named(r.Name)})
	}
	if !allows {
		return nil, errors.New(`no rule allows a call, so all would be denied; end the rules with "allow"`)
	}
	if len(c.Rules) > 0 {
		p.rules = append(p.rules, rule{NoRule, true, nil, c.Meter.rules.named(NoRule)})
	}
	clear(names)
	for i := range c.Quotas {
		q := &c.Quotas[i]
		err := q.check()
		if err == nil && names[q.Name] {
			err = errors.New("another one has this name")
		}
		var matches matcher
		if err == nil {
			matches, err = q.Match.compile(c.Names, false)
		}
		if err != nil {
			return nil, fmt.Errorf("quota %s: %w", q.Name, err)
		}
		names[q.Name] = true
		p.quotas = append(p.quotas, limited{q, matches, nil, c.Meter.quotas.named(q.Name)})
	}
	if len(p.quotas) > maxQuotas {
		return nil, fmt.Errorf("there are %d quotas, and at most %d may apply to one Partner", len(p.quotas), maxQuotas)
	}
	return p, nil
}

// Open has the quotas count in a book.
func (p *Policy) Open(b *Book) {
	for i := range p.quotas {
		p.quotas[i].account = b.account(p.quotas[i].Name)
	}
}

// Decide decides about a call, and counts it. The call's use of its quotas is counted by the Use, owned by the caller
// of Decide. Every error is a *task.Error, or the error of ctx: of kind AuthorizationFailed from a rule, with a Refusal
// as its cause, and LimitExceeded from a quota.
func (p *Policy) Decide(ctx context.Context, c *Call, u *Use) error {
	if c.isOperator() {
		return nil
	}
	also := c.besides()
	if err := both(c, also, func(c *Call) error { return p.allow(ctx, c) }); err != nil {
		return err
	}
	if err := p.count(ctx, c, also, u); err != nil {
		return err
	}
	// A Leader beyond its quotas is not to use up the decision point, too. So a question counts, whatever is decided.
	err := both(c, also, func(c *Call) error { return p.further(ctx, c) })
	if err != nil {
		u.End()
	}
	return err
}

// both asks about a call, and about its second action, unless the latter is nil.
func both(c, also *Call, ask func(*Call) error) error {
	if err := ask(c); err != nil || also == nil {
		return err
	}
	return ask(also)
}

// Further is the name of the decisions of Config.Further, in logs and metrics.
const Further = "(decision point)"

// further asks Config.Further.
func (p *Policy) further(ctx context.Context, c *Call) error {
	if p.config.Further == nil {
		return nil
	}
	_, err := c.Skill()
	if err == nil { // otherwise one skill would be asked about, and another one used
		err = p.config.Further(ctx, c)
	}
	counts := p.config.Meter.rules.named(Further)
	switch {
	case err == nil:
		counts.allowed.Add(1)
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case p.config.DryRun:
		p.tried(ctx, Further, counts, c, err)
		return nil
	}
	counts.denied.Add(1)
	return Denied(err)
}

// tried counts and logs a refusal without effect, since the policy is only tried.
func (p *Policy) tried(ctx context.Context, rule string, counts *decisions, c *Call, err error) {
	counts.dry.Add(1)
	p.config.Log.InfoContext(ctx, "a policy that is tried would deny a call", "rule", rule, "leader", c.Leader,
		"dialect", c.Dialect, "command", c.Command, "error", err)
}

// deciding returns the deciding rule for a call; nil without rules.
func (p *Policy) deciding(c *Call) *rule {
	for i := range p.rules {
		if r := &p.rules[i]; r.matches.holds(c) {
			return r
		}
	}
	return nil
}

// Explanation is a policy's view of a call.
type Explanation struct {
	Rule   string // the deciding one; empty without rules
	Denied bool   // by the rule
	DryRun bool   // the policy is only tried
	Asks   bool   // Config.Further is asked
	Quotas []string
}

// Explain returns the policy's view of a call. It counts nothing, and sends no question to a decision point.
func (p *Policy) Explain(c *Call) Explanation {
	e := Explanation{DryRun: p.config.DryRun, Asks: p.config.Further != nil}
	if r := p.deciding(c); r != nil {
		e.Rule, e.Denied = r.name, r.deny
	}
	for i := range p.quotas {
		if q := &p.quotas[i]; q.matches.holds(c) {
			e.Quotas = append(e.Quotas, q.Name)
		}
	}
	return e
}

// Denies returns the error of a call denied by the rules; nil if they do not deny it. It counts nothing.
func (p *Policy) Denies(c *Call) error {
	if r := p.deciding(c); r != nil && r.deny && !p.config.DryRun {
		return Denied(&Refusal{Rule: r.name})
	}
	return nil
}

// allow asks the rules.
func (p *Policy) allow(ctx context.Context, c *Call) error {
	r := p.deciding(c)
	switch {
	case r == nil:
		return nil
	case !r.deny:
		r.counts.allowed.Add(1)
		return nil
	case p.config.DryRun:
		p.tried(ctx, r.name, r.counts, c, &Refusal{r.name, c.skill.err})
		return nil
	}
	r.counts.denied.Add(1)
	return Denied(&Refusal{r.name, c.skill.err})
}

// count counts the call, once, in all quotas for it or for its second action, or in none.
func (p *Policy) count(ctx context.Context, c, also *Call, u *Use) error {
	if len(p.quotas) > 0 && p.config.Ready != nil {
		if err := p.config.Ready(ctx); err != nil {
			return err
		}
	}
	var now time.Time
	for i := range p.quotas {
		q := &p.quotas[i]
		if !q.matches.holds(c) && (also == nil || !q.matches.holds(also)) {
			continue
		}
		if now.IsZero() {
			now = q.account.book.now()
		}
		e, err := q.account.entry(ctx, q.key(c, p.config.Partner))
		if err == nil {
			var full *task.Error
			if full, err = e.call(ctx, q.Quota, now); err == nil {
				err = p.refused(ctx, q, c.Leader, full)
			}
			if err != nil {
				e.release()
			}
		}
		if err != nil {
			u.uncall()
			return err
		}
		u.add(ctx, p, q, e, c.Leader, now)
	}
	return nil
}

// refused counts the error of a quota, and returns it. In a dry run, it logs the error and returns nil. A nil error
// stays nil.
func (p *Policy) refused(ctx context.Context, q *limited, leader string, err *task.Error) error {
	if err == nil {
		return nil
	}
	limit, _ := err.Data["limit"].(string)
	if !q.DryRun {
		q.counts.denied.Add(1)
		return err
	}
	q.counts.dry.Add(1)
	p.config.Log.InfoContext(ctx, "a quota that is tried would refuse a call", "limit", limit, "leader", leader)
	return nil
}
