// SPDX-License-Identifier: Apache-2.0

package aac

import (
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"slices"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/trust/policy"
	"github.com/aip-gateway/aip-gateway/trust/token"
)

// Audience returns the canonical name of an agent in the claim aud (§6.7).
func Audience(aic identity.AIC) string { return "acps:agent:" + string(aic) }

// Config is the configuration of a Gate.
type Config struct {
	AIC identity.AIC // of the Partner
	// Tokens verify tokens for Audience(AIC), or an alias of it.
	Tokens token.Verifiers
	// Require refuses calls without a token. The operator's own need none.
	Require bool
	// Refuse has tokens be used once: each needs a jti. The Gate must then be opened before Ready returns.
	Refuse bool
	// Partner is the name under which used tokens are stored.
	Partner string
	// Ready waits until the Gate is open; nil if it is. An error refuses the call.
	Ready func(context.Context) error

	Meter *Meter
	Log   *slog.Logger
}

// Gate checks the tokens of calls of one Partner. It may be used by any number of goroutines at once.
type Gate struct {
	config Config
	used   *Used // set by Open
	known  delegations
	debug  bool // what is accepted is logged
}

// New returns a Gate.
func New(c Config) *Gate {
	return &Gate{config: c, known: delegations{seed: maphash.MakeSeed()},
		debug: c.Log.Enabled(context.Background(), slog.LevelDebug)}
}

// Open has used tokens be kept.
func (g *Gate) Open(u *Used) { g.used = u }

// Close ends what the verifiers of tokens do.
func (g *Gate) Close() { g.config.Tokens.Close() }

// Tokens returns what verifies the tokens.
func (g *Gate) Tokens() token.Verifiers { return g.config.Tokens }

// Check returns what the token of a call says; nil if the call has none and needs none. authorization are the values of
// the header of this name. Every error is a *task.Error, or that of ctx: of kind AuthenticationRequired,
// AccessTokenInvalid or AuthorizationFailed with a *Refusal as its cause, or StoreUnavailable.
func (g *Gate) Check(ctx context.Context, c *policy.Call, authorization []string) (*identity.Claims, error) {
	if c.Peer.Kind == identity.OperatorKind {
		return nil, nil
	}
	bearer, n := token.Bearer(authorization)
	switch {
	case len(c.Peer.Chains) == 0: // the proof is no certificate
		if !g.config.Require {
			return nil, nil // what stands in the header, if anything, is not for this Gate
		}
		return nil, g.refuse(&Refusal{Reason: Certificate})
	case n == 0 && !g.config.Require:
		return nil, nil
	case n == 0:
		return nil, g.refuse(&Refusal{Reason: Missing})
	case n > 1:
		return nil, g.refuse(&Refusal{Reason: token.Malformed, Detail: fmt.Sprintf("the call has %d of them", n)})
	}
	claims, err := g.config.Tokens.Verify(ctx, bearer)
	if err != nil {
		if r := ofToken(err); r != nil {
			return nil, g.refuse(r)
		}
		return nil, err
	}
	d, r := g.judge(c, claims)
	if r == nil {
		r, err = g.use(ctx, claims)
	}
	switch {
	case err != nil:
		return nil, err
	case r != nil:
		r.Issuer, r.ID, r.Subject, r.Delegation = claims.Issuer, claims.ID, subjectHash(claims), d.id
		return nil, g.refuse(r)
	}
	g.config.Meter.count(accepted)
	if g.debug {
		g.config.Log.DebugContext(ctx, "an access token was accepted", "leader", c.Leader, "command", c.Command,
			"issuer", claims.Issuer, "jti", claims.ID, "delegation", d.id, "subject", subjectHash(claims), "actors", d.chain)
	}
	return claims, nil
}

// judge decides about a token whose signature, audience and times are right.
func (g *Gate) judge(c *policy.Call, claims *identity.Claims) (d delegation, r *Refusal) {
	d, err := g.known.of(claims)
	switch {
	case err != nil:
		return d, &Refusal{Reason: token.Malformed, Detail: err.Error()}
	case g.config.Refuse && claims.ID == "":
		return d, &Refusal{Reason: token.Malformed, Detail: "jti is missing, and each token may be used once"}
	case d.target != "" && !g.config.AIC.Is(d.target):
		return d, &Refusal{Reason: token.Audience, Detail: "acps_target_aic is another Partner"}
	case c.Peer.Kind != identity.AICKind || d.chain[len(d.chain)-1] != identity.AIC(c.Peer.ID):
		return d, &Refusal{Reason: Actor, Detail: "the actor is " + string(d.chain[len(d.chain)-1])}
	case !d.isBoundTo(c.Peer.Chains[0][0]):
		return d, &Refusal{Reason: Binding}
	}
	if wrong := d.checkRoute(g.config.AIC); wrong != "" {
		return d, &Refusal{Reason: Route, Detail: wrong}
	}
	if d.obliges {
		return d, &Refusal{Reason: Obligation, Detail: "no obligation is known here"}
	}
	if d.skill != "" {
		asked := c.Skills
		named, err := c.Skill()
		if err != nil {
			return d, &Refusal{Reason: Skill, Detail: err.Error()}
		}
		if named != "" {
			asked = append(slices.Clone(asked), named)
		}
		starts := c.Message != nil && c.Message.Command == task.Start
		if len(asked) == 0 && starts || slices.ContainsFunc(asked, func(s string) bool { return s != d.skill }) {
			return d, &Refusal{Reason: Skill, Detail: "it is for " + d.skill}
		}
	}
	return d, nil
}

// use uses up a token, where each may be used once.
func (g *Gate) use(ctx context.Context, c *identity.Claims) (*Refusal, error) {
	if !g.config.Refuse {
		return nil, nil
	}
	if g.config.Ready != nil {
		if err := g.config.Ready(ctx); err != nil {
			return nil, err
		}
	}
	fresh, err := g.used.add(ctx, g.config.Partner, c)
	if err != nil || fresh {
		return nil, err
	}
	return &Refusal{Reason: Replayed}, nil
}

// refuse counts a refusal, and returns its error.
func (g *Gate) refuse(r *Refusal) error {
	g.config.Meter.count(string(r.Reason))
	return refused(r)
}
