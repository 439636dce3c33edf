// SPDX-License-Identifier: Apache-2.0

package aac

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
)

// agentSubject begins the subject id of an agent (§6.1).
const agentSubject = "agent:"

// The modes of a chain of delegation (§10.1).
const (
	modeFixed   = "fixed"
	modeDynamic = "dynamic"
)

// delegation is what the claims of a token say of the delegation (§10.2, §10.3).
type delegation struct {
	chain           []identity.AIC // the actors, the first one first; the last one is the caller
	thumbprint      string         // of the certificate that the token is bound to, as x5t#S256; empty for none
	bound           bool           // it is bound to something
	target          string         // the AIC of the Partner that it is for; empty for none
	skill           string         // the only one that it is for; empty for all
	id              string         // of the delegation
	mode            string         // modeFixed, modeDynamic, or empty
	route           []identity.AIC // of modeFixed
	depth, maxDepth float64        // of the chain; maxDepth counts if it is limited
	limited         bool
	obliges         bool // who carries out the call must do something beside it (§6.6)
}

// readDelegation reads the claims of a token. The error says which claim is missing, or has no valid form.
func readDelegation(c *identity.Claims) (d delegation, err error) {
	claims := gjson.Parse(c.JSON)
	var act, scope bool
	claims.ForEach(func(name, v gjson.Result) bool {
		switch name.Str {
		case "act":
			act = true
			d.chain, err = readActors(v)
		case "scope":
			scope = v.Type == gjson.String
		case "cnf":
			d.bound = true
			d.thumbprint, err = readBinding(v)
		case "acps_target_aic":
			d.target, err = word(name.Str, v)
		case "acps_skill_id":
			d.skill, err = word(name.Str, v)
		case "acps_delegation_id":
			d.id, err = word(name.Str, v)
		case "acps_delegation_mode":
			if d.mode, err = word(name.Str, v); err == nil && d.mode != modeFixed && d.mode != modeDynamic {
				err = fmt.Errorf("acps_delegation_mode is %.40q, and must be fixed or dynamic", d.mode)
			}
		case "acps_allowed_route":
			d.route, err = readRoute(v)
		case "obligations", "acps_obligations":
			d.obliges = d.obliges || !jsonrpc.IsEmpty(v)
		case "acps_chain_depth":
			d.depth, err = depth(name.Str, v)
		case "acps_max_chain_depth":
			d.limited = true
			d.maxDepth, err = depth(name.Str, v)
		}
		return err == nil
	})
	switch {
	case err != nil:
		return d, err
	case c.Subject == "":
		return d, errors.New("sub is missing")
	case c.Issued.IsZero():
		return d, errors.New("iat is missing")
	case !scope:
		return d, errors.New("scope is missing, or no string")
	case !act:
		return d, errors.New("act is missing: it would say that the caller acts for the subject")
	}
	return d, nil
}

// readActors reads a claim act (§10.4), the last actor outermost. RFC 8693 has an object; a string is taken for its
// subject.
func readActors(v gjson.Result) (chain []identity.AIC, err error) {
	for v.Exists() {
		var actor identity.AIC
		switch {
		case v.Type == gjson.String:
			actor, err = agent(v.Str)
		case !v.IsObject():
			err = errors.New("act is neither an object nor a string")
		default:
			actor, err = readActor(v)
		}
		if err != nil {
			return nil, err
		}
		chain = append(chain, actor)
		v = jsonrpc.Member(v, "act")
	}
	slices.Reverse(chain)
	return chain, nil
}

// readActor reads an actor: its subject, its AIC, or both, if they are the same.
func readActor(v gjson.Result) (actor identity.AIC, err error) {
	sub, aic := jsonrpc.Member(v, "sub"), jsonrpc.Member(v, "aic")
	switch {
	case sub.Exists() && sub.Type != gjson.String, aic.Exists() && aic.Type != gjson.String,
		!sub.Exists() && !aic.Exists():
		return "", errors.New("an actor of act has neither sub nor aic")
	case sub.Exists():
		if actor, err = agent(sub.Str); err != nil || !aic.Exists() {
			return actor, err
		}
	}
	named, err := identity.ParseAIC(aic.Str)
	switch {
	case err != nil:
		return "", fmt.Errorf("aic in act: %w", err)
	case sub.Exists() && named != actor:
		return "", errors.New("sub and aic in act are not the same agent")
	}
	return named, nil
}

// agent returns the AIC in the subject id of an agent.
func agent(subject string) (identity.AIC, error) {
	rest, ok := strings.CutPrefix(subject, agentSubject)
	if !ok {
		return "", fmt.Errorf("an actor is not %s<AIC>", agentSubject)
	}
	aic, err := identity.ParseAIC(rest)
	if err != nil {
		return "", fmt.Errorf("an actor: %w", err)
	}
	return aic, nil
}

// readBinding returns the thumbprint of a claim cnf (RFC 8705 §3.1); empty if it has another binding, which cannot be
// confirmed.
func readBinding(v gjson.Result) (string, error) {
	if !v.IsObject() {
		return "", errors.New("cnf is not an object")
	}
	thumbprint := jsonrpc.Member(v, "x5t#S256")
	if thumbprint.Exists() && thumbprint.Type != gjson.String {
		return "", errors.New("x5t#S256 in cnf is not a string")
	}
	return thumbprint.Str, nil
}

// readRoute reads the path of a fixed chain (§10.6).
func readRoute(v gjson.Result) (route []identity.AIC, err error) {
	if !v.IsArray() {
		return nil, errors.New("acps_allowed_route is not an array")
	}
	v.ForEach(func(_, one gjson.Result) bool {
		var aic identity.AIC
		aic, err = agent(one.String())
		route = append(route, aic)
		return err == nil
	})
	return route, err
}

func word(name string, v gjson.Result) (string, error) {
	if v.Type != gjson.String || v.Str == "" {
		return "", fmt.Errorf("%s is not a string", name)
	}
	return v.Str, nil
}

func depth(name string, v gjson.Result) (float64, error) {
	if v.Type != gjson.Number || v.Num < 0 {
		return 0, fmt.Errorf("%s is not a number", name)
	}
	return v.Num, nil
}

// isBoundTo reports whether the token may come beside a certificate: it is bound to it, or to nothing.
func (d *delegation) isBoundTo(cert *x509.Certificate) bool {
	if !d.bound {
		return true
	}
	sum := sha256.Sum256(cert.Raw)
	var text [(8*sha256.Size + 5) / 6]byte
	base64.RawURLEncoding.Encode(text[:], sum[:])
	return d.thumbprint == string(text[:])
}

// checkRoute returns what is wrong with the place of the caller in the chain; empty for nothing. self is the Partner.
func (d *delegation) checkRoute(self identity.AIC) string {
	if d.limited && d.depth > d.maxDepth {
		return fmt.Sprintf("acps_chain_depth is %v, and acps_max_chain_depth %v", d.depth, d.maxDepth)
	}
	if d.mode != modeFixed {
		return ""
	}
	// The actors are those that stand before this Partner. A long chain may have only the last of them, and a
	// delegation id (§10.4).
	hop := slices.Index(d.route, self)
	first := hop - len(d.chain)
	if hop < 0 || first < 0 || !slices.Equal(d.route[first:hop], d.chain) || first > 0 && d.id == "" {
		return "act does not lead to this Partner along acps_allowed_route"
	}
	return ""
}
