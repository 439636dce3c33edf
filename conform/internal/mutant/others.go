// SPDX-License-Identifier: Apache-2.0

package mutant

import (
	"crypto/tls"

	"github.com/aip-gateway/aip-gateway/conform/internal/partner"
)

// identities are deviations in who is let in.
var identities = []Mutant{
	{"no certificate is needed", "5.2", func(p *partner.Partner) { p.ClientAuth = tls.RequestClientCert }},
	{"a certificate of any authority is accepted", "5.2", func(p *partner.Partner) {
		p.ClientAuth = tls.RequireAnyClientCert
	}},
	{"a certificate without an AIC is accepted", "5.2", accepts("nameless")},
	{"any senderId is accepted", "5.2|4.3", accepts("other sender")},
	{"another senderId is invalid params", "5.2|4.3", code("AuthorizationFailedError", -32602)},
	{"another senderId is not authenticated", "5.2|4.3", code("AuthorizationFailedError", -32000)},
	{"a start with another senderId is refused when it has begun", "5.2|4.3", func(p *partner.Partner) {
		accepts("other sender")(p)
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			v, failure := next()
			if failure == nil && c.Message != nil && c.Caller != "" && c.Text("senderId") != c.Caller {
				return nil, p.Failure("AuthorizationFailedError")
			}
			return v, failure
		}
	}},
	{"the senderId of a stream is not read", "5.2|4.3|6.2", sender("stream")},
	{"the senderId of a start with notifications is not read", "5.2|4.3|6.3", sender(startMethod)},
}

// sender believes the senderId of a method.
func sender(name string) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			if message, is := c.Params["message"].(object); is && c.Method == name && c.Caller != "" {
				message["senderId"] = c.Caller
			}
			return next()
		}
	}
}

func card(change func(object)) func(*partner.Partner) {
	return func(p *partner.Partner) { change(p.Card) }
}

const acs = "ACS"

// cards are deviations of the ACS.
var cards = []Mutant{
	{"the ACS has no aic", acs, card(del("aic"))},
	{"the ACS has another aic", acs, card(put("other", "aic"))},
	{"the ACS does not say whether the Partner is active", acs, card(del("active"))},
	{"the ACS says active in words", acs, card(put("yes", "active"))},
	{"the ACS has no name", acs, card(del("name"))},
	{"the ACS has no description", acs, card(del("description"))},
	{"the ACS has no version", acs, card(del("version"))},
	{"the ACS has no version of the protocol", acs, card(del("protocolVersion"))},
	{"the ACS has no endpoints", acs, card(del("endPoints"))},
	{"the ACS has an endpoint without a URL", acs, card(func(o object) {
		delete(o["endPoints"].([]any)[0].(object), "url")
	})},
	{"the ACS has an endpoint without a transport", acs, card(func(o object) {
		delete(o["endPoints"].([]any)[0].(object), "transport")
	})},
	{"the ACS has no capabilities", acs, card(del("capabilities"))},
	{"the ACS says streaming in words", acs, card(put("yes", "capabilities", "streaming"))},
	{"the ACS has one message queue as a text", acs, card(put("rabbitmq:4.0", "capabilities", "messageQueue"))},
	{"the ACS has no skills", acs, card(del("skills"))},
	{"the ACS has a skill without an id", acs, card(func(o object) { delete(o["skills"].([]any)[0].(object), "id") })},
}

// groups are deviations of the answer to an invitation.
var groups = []Mutant{
	{"an invitation gets another code", "7|5.2", code("GroupNotSupportedError", -32004)},
	{"an invitation is an internal error", "7|5.2", code("GroupNotSupportedError", -32000)},
	{"an invitation is answered with null", "7|5.2", func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			if c.Method == "group" {
				return nil, nil
			}
			return next()
		}
	}},
	{"an invitation is answered with success", "7|5.2", func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			if c.Method == "group" {
				return object{"success": true}, nil
			}
			return next()
		}
	}},
}
