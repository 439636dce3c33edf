// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"crypto/x509"
	"encoding/json"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/policy"
)

// input is what a decision is about, as the decision point reads it (AAC v02.02 §8.5).
type input struct {
	PrimarySubject subject     `json:"primarySubject"` // on whose behalf the call is made
	Actor          actor       `json:"actor"`
	Action         string      `json:"action"`
	Resource       resource    `json:"resource"`
	Environment    environment `json:"environment"`
}

// subject is who acts, or on whose behalf.
type subject struct {
	ID         string         `json:"id"`   // §6.1
	Type       string         `json:"type"` // agent, human, service; anonymous for who has proven nothing
	Roles      []string       `json:"roles,omitempty"`
	Scopes     []string       `json:"scopes,omitempty"`
	Attributes map[string]any `json:"attributes,omitempty"`
}

// actor is who has sent the call, and on which way it has come.
type actor struct {
	ImmediateActor subject  `json:"immediateActor"`
	ActorChain     []string `json:"actorChain"` // the immediate actor is the last one, but for a human
}

// resource is what the call is for.
type resource struct {
	AgentAIC string   `json:"agentAic,omitempty"`
	Mount    string   `json:"mount,omitempty"`
	SkillID  string   `json:"skillId,omitempty"`
	Skills   []string `json:"skills,omitempty"` // of an invitation to a group
	TaskID   string   `json:"taskId,omitempty"` // of a task that exists
	GroupID  string   `json:"groupId,omitempty"`
}

// environment is how and when the call was made.
type environment struct {
	Transport string    `json:"transport"` // the protocol, and direct, stream or group
	Dialect   string    `json:"dialect"`
	Method    string    `json:"method,omitempty"`
	Time      time.Time `json:"time,omitzero"` // set when it is sent
}

// inputOf returns the input for a call to the Partner with an AIC, or with none. Nothing of what the message says is in
// it but for the names that it has for things.
func inputOf(c *policy.Call, aic string) *input {
	who := subjectOf(c)
	in := &input{
		PrimarySubject: who,
		Actor:          actor{ImmediateActor: subject{ID: who.ID, Type: who.Type}, ActorChain: []string{}},
		Action:         actionOf(c.Command),
		Resource:       resource{AgentAIC: aic, Mount: c.Mount, SkillID: c.Skill(), Skills: c.Skills},
		Environment:    environment{Dialect: c.Dialect, Method: c.Method},
	}
	if who.Type != human {
		in.Actor.ActorChain = append(in.Actor.ActorChain, who.ID) // §9.1, §9.2
	}
	way := "direct"
	if m := c.Message; m != nil {
		if c.Command != "start" { // that of a start is new
			in.Resource.TaskID = m.TaskID
		}
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

// The types of subjects.
const (
	human     = "human"
	agent     = "agent"
	service   = "service"
	anonymous = "anonymous"
)

// subjectOf returns who calls.
func subjectOf(c *policy.Call) (s subject) {
	p := c.Peer
	if !p.Verified() {
		return subject{ID: c.Leader, Type: anonymous}
	}
	s.Attributes = map[string]any{"proof": p.Proof.String(), "leader": c.Leader}
	switch {
	case p.Claims != nil:
		s.ID, s.Type = subjectOfClaims(p.Claims)
		s.Scopes = p.Claims.Scopes
		all := gjson.Parse(p.Claims.JSON)
		all.Get("roles").ForEach(func(_, role gjson.Result) bool {
			if role.Type == gjson.String {
				s.Roles = append(s.Roles, role.Str)
			}
			return true
		})
		s.Attributes["claims"] = claimsOf(all)
	case p.Kind == identity.AICKind:
		s.ID, s.Type = "agent:"+p.ID, agent
	case p.Kind == identity.AIDKind:
		s.ID, s.Type = p.Leader(), agent
	default:
		s.ID, s.Type = p.Leader(), service
	}
	if len(p.Chains) > 0 && len(p.Chains[0]) > 0 {
		s.Attributes["certificate"] = certificateOf(p.Chains[0][0])
	}
	return s
}

// subjectOfClaims returns who has a token. Of an issuer that says the type of its subjects, sub may be the whole id.
func subjectOfClaims(c *identity.Claims) (id, kind string) {
	kind = human
	if v := gjson.Parse(c.JSON).Get("acps_subject_type"); v.Type == gjson.String {
		switch v.Str {
		case human, agent, service:
			if kind = v.Str; strings.HasPrefix(c.Subject, kind+":") {
				return c.Subject, kind
			}
		}
	}
	return kind + ":" + c.Issuer + "#" + c.Subject, kind
}

// claimsOf returns the claims of a token, without those that are about the token itself: they differ from token to
// token, and decide nothing.
func claimsOf(all gjson.Result) map[string]json.RawMessage {
	claims := make(map[string]json.RawMessage)
	all.ForEach(func(name, v gjson.Result) bool {
		switch name.Str {
		case "exp", "iat", "nbf", "jti", "cnf":
		default:
			claims[name.Str] = json.RawMessage(v.Raw)
		}
		return true
	})
	return claims
}

// certificateOf returns what a certificate says of its subject.
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

// actions are the names of what is no command on a task.
var actions = map[string]string{
	"set-webhook": "notification.set", "get-webhooks": "notification.get", "delete-webhooks": "notification.delete",
	"extended-card": "card.get", "join-group": "group.join",
}

// actionOf returns the action that a command is: task.start.
func actionOf(command string) string {
	if action, ok := actions[command]; ok {
		return action
	}
	return "task." + command
}
