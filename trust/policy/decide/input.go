// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"crypto/x509"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// input is the subject of a decision, in the form for the decision point (AAC v02.02 §8.5).
type input struct {
	PrimarySubject subject     `json:"primarySubject"` // the subject the call is made for
	Actor          actor       `json:"actor"`
	Action         string      `json:"action"`
	Resource       resource    `json:"resource"`
	Environment    environment `json:"environment"`
}

// subject is the actor, or the subject it acts for.
type subject struct {
	ID         string         `json:"id"`   // §6.1
	Type       string         `json:"type"` // agent, human, service; anonymous without a proof
	Roles      []string       `json:"roles,omitempty"`
	Scopes     []string       `json:"scopes,omitempty"`
	Attributes map[string]any `json:"attributes,omitempty"`
}

// actor is the sender of the call, and the way it has come.
type actor struct {
	ImmediateActor subject  `json:"immediateActor"`
	ActorChain     []string `json:"actorChain"` // the immediate actor is the last one, but for a human
	DelegationID   string   `json:"delegationId,omitempty"`
}

// resource is the target of the call.
type resource struct {
	AgentAIC string   `json:"agentAic,omitempty"`
	Mount    string   `json:"mount,omitempty"`
	SkillID  string   `json:"skillId,omitempty"`
	Skills   []string `json:"skills,omitempty"` // of an invitation to a group
	TaskID   string   `json:"taskId,omitempty"` // of an existing task
	GroupID  string   `json:"groupId,omitempty"`
}

// environment is the manner and the time of the call.
type environment struct {
	Transport string    `json:"transport"` // the protocol, and direct, stream or group
	Dialect   string    `json:"dialect"`
	Method    string    `json:"method,omitempty"`
	Time      time.Time `json:"time,omitzero"` // set when it is sent
}

// inputOf returns the input for a call to the Partner with an AIC, or with none. Nothing of the message's content is in
// it but for its names for things.
func inputOf(c *policy.Call, aic string) *input {
	named, _ := c.Skill() // without an error, as the policy knows
	in := &input{
		Action:      actionOf(c.Command),
		Resource:    resource{AgentAIC: aic, Mount: c.Mount, SkillID: named, Skills: c.Skills, TaskID: c.Task},
		Environment: environment{Dialect: c.Dialect, Method: c.Method},
	}
	in.setSubjects(c)
	way := "direct"
	if m := c.Message; m != nil {
		in.Resource.GroupID = m.GroupID
		if c.Method == "" && m.GroupID != "" {
			way = "group"
		}
	}
	if c.Stream {
		way = "stream"
	}
	protocol, _, _ := strings.Cut(c.Dialect, "/")
	in.Environment.Transport = protocol + "." + way
	return in
}

// setSubjects sets the caller, and the subject it acts for: itself, or the subject of a token beside its certificate
// (§9).
func (in *input) setSubjects(c *policy.Call) {
	who, chain := subjectOf(c), []string{}
	claims := c.Peer.Claims
	if claims == nil || !c.Peer.Verified() {
		in.PrimarySubject = who
		who = subject{ID: who.ID, Type: who.Type} // nothing is said twice
	} else {
		all := gjson.Parse(claims.JSON)
		ownToken := c.Peer.Proof == identity.ByToken
		delegation := !ownToken && all.Get("act").IsObject()
		in.PrimarySubject = subjectOfClaims(claims, all, delegation)
		if ownToken {
			maps.Copy(in.PrimarySubject.Attributes, who.Attributes)
			who = subject{ID: in.PrimarySubject.ID, Type: in.PrimarySubject.Type}
		} else {
			chain = before(all.Get("act"))
			in.Actor.DelegationID = all.Get("acps_delegation_id").String()
		}
	}
	if who.Type != human {
		chain = append(chain, who.ID)
	}
	in.Actor.ImmediateActor, in.Actor.ActorChain = who, chain
}

// before returns the actors before the actor named by an act claim, the first one first (§10.4).
func before(act gjson.Result) []string {
	chain := []string{}
	for inner := act.Get("act"); inner.IsObject() && len(chain) < maxChain; inner = inner.Get("act") {
		chain = append(chain, inner.Get("sub").String())
	}
	slices.Reverse(chain)
	return chain
}

// maxChain is the most actors in an input.
const maxChain = 32

// The types of subjects.
const (
	human     = "human"
	agent     = "agent"
	service   = "service"
	anonymous = "anonymous"
)

// subjectOf returns the caller, without the content of its token.
func subjectOf(c *policy.Call) (s subject) {
	p := c.Peer
	if !p.Verified() {
		return subject{ID: c.Leader, Type: anonymous}
	}
	switch p.Kind {
	case identity.AICKind:
		s.ID, s.Type = "agent:"+p.ID, agent
	case identity.AIDKind:
		s.ID, s.Type = p.Leader(), agent
	default:
		s.ID, s.Type = p.Leader(), service
	}
	s.Attributes = map[string]any{"proof": p.Proof.String(), "leader": c.Leader}
	if len(p.Chains) > 0 && len(p.Chains[0]) > 0 {
		s.Attributes["certificate"] = certificateOf(p.Chains[0][0])
	}
	return s
}

// subjectOfClaims returns the subject of a token. A delegation's token has the whole id as its sub (§10.4); a token of
// any other issuer does not name the subjects of others.
func subjectOfClaims(c *identity.Claims, all gjson.Result, delegation bool) subject {
	s := subject{Type: human, Scopes: c.Scopes, Attributes: map[string]any{"claims": claimsOf(all)}}
	if v := all.Get("acps_subject_type"); v.Str == agent || v.Str == service {
		s.Type = v.Str
	}
	kind, _, _ := strings.Cut(c.Subject, ":")
	if delegation && (kind == human || kind == agent || kind == service) {
		s.ID, s.Type = c.Subject, kind
	} else {
		s.ID = s.Type + ":" + c.Issuer + "#" + c.Subject
	}
	all.Get("roles").ForEach(func(_, role gjson.Result) bool {
		if role.Type == gjson.String {
			s.Roles = append(s.Roles, role.Str)
		}
		return true
	})
	return s
}

// claimsOf returns the claims of a token, without those about the token itself: they differ from token to token, and
// decide nothing.
func claimsOf(all gjson.Result) map[string]json.RawMessage {
	claims := make(map[string]json.RawMessage)
	all.ForEach(func(name, v gjson.Result) bool {
		switch name.Str {
		case "exp", "iat", "nbf", "jti", "cnf", "act":
		default:
			claims[name.Str] = json.RawMessage(v.Raw)
		}
		return true
	})
	return claims
}

// certificateOf returns the subject's attributes from a certificate.
func certificateOf(c *x509.Certificate) map[string]any {
	all := map[string]any{"issuer": c.Issuer.CommonName, "serial": c.SerialNumber.Text(16)}
	for name, values := range map[string][]string{"organization": c.Subject.Organization,
		"organizationalUnit": c.Subject.OrganizationalUnit, "country": c.Subject.Country} {
		if len(values) > 0 {
			all[name] = values
		}
	}
	return all
}

// actions are the names of calls other than commands on a task.
var actions = map[string]string{
	"set-webhook": "notification.set", "get-webhooks": "notification.get", "delete-webhooks": "notification.delete",
	"extended-card": "card.get", "join-group": "group.join",
}

// actionOf returns the action for a command: task.start.
func actionOf(command string) string {
	if action, ok := actions[command]; ok {
		return action
	}
	return "task." + command
}
