// SPDX-License-Identifier: Apache-2.0

package callerinfo

import (
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// claims are the claims of a token: the one of RFC 8693 for a subject (sub) with another acting for it (act), with the
// names of AAC.
type claims struct {
	Issuer   string `json:"iss"`
	Subject  string `json:"sub"` // the Leader, as AAC names it, or the subject it acts for
	Actor    *actor `json:"act"` // the Partner, asking the agent; before it the Leader, if it is not sub
	Audience string `json:"aud"`
	Issued   int64  `json:"iat"` // seconds since 1970, as exp
	Expires  int64  `json:"exp"`
	Leader   string `json:"leader"`          // the Leader's name in the gateway, marked if nothing is proven
	Proof    string `json:"proof,omitempty"` // the proof of its name; missing if there is none
	Task     string `json:"task,omitempty"`  // in the words of the agent, as the session
	Session  string `json:"session,omitempty"`
}

// actor is the party acting for the subject, and the party acting before it.
type actor struct {
	Subject string `json:"sub"`
	Before  *actor `json:"act,omitempty"`
}

// claims returns the claims about a subject.
func (i *Introducer) claims(of subject, now time.Time) *claims {
	leader := named(&of.caller)
	sub, act := principal(leader), &actor{Subject: i.config.Actor}
	if of.caller.Subject != "" {
		sub, act.Before = of.caller.Subject, &actor{Subject: sub}
	}
	return &claims{
		Issuer: i.config.Issuer.name, Audience: i.config.Audience,
		Subject: sub, Actor: act,
		Issued: now.Unix(), Expires: now.Add(Validity).Unix(),
		Leader: leader, Proof: of.caller.Proof, Task: of.ref.Task, Session: of.ref.Session,
	}
}

// named returns the name of a caller's Leader; empty for no caller. The name of a Leader without proof is marked, so
// the agent does not take it for a proven one.
func named(c *agent.Caller) string {
	if c.Proof == "" && c.Leader != "" && !strings.HasPrefix(c.Leader, limit.Unverified) {
		return limit.Unverified + c.Leader
	}
	return c.Leader
}

// principal returns the name of a Leader as AAC has it: an AIC with "agent:" before it. Other names have a prefix of
// their kind already.
func principal(name string) string {
	if strings.Contains(name, ":") {
		return name
	}
	return "agent:" + name
}
