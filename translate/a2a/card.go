// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Limits of a card. The reader of the body limits its size.
const (
	maxSkills     = 1000
	maxInterfaces = 100
	maxExtensions = 100
	maxWords      = 1000 // in each list: modes, tags, examples
	maxIgnored    = 10   // named members
)

// ParseCard reads an agent card of any version. Agents mix the members of versions, so each member is read at any
// place. A missing or null member stays zero. A member with another type than in A2A is ignored, and so are the entries
// of a list beyond its limit: cards are written by hand, and the rest of such a card is right. The Card is a copy of
// body.
func ParseCard(body []byte) (*translate.Card, error) {
	if !utf8.Valid(body) || !json.Valid(body) {
		return nil, wire.Refuse("the agent's card is not JSON in UTF-8")
	}
	doc := gjson.ParseBytes(body)
	if !doc.IsObject() {
		return nil, wire.Refuse("the agent's card is JSON, but no object")
	}
	r := cardReader{card: &translate.Card{Raw: bytes.Clone(body)}}
	known := 0
	wire.Members(doc, func(key string, v gjson.Result) {
		if onlyOfCards[key] {
			known++
		}
		r.member(key, v)
	})
	if known < 2 {
		return nil, wire.Refuse("the agent's card is an object, but no agent card")
	}
	r.addInterfaces()
	r.card.Security = r.security(doc)
	return r.card, nil
}

// onlyOfCards are the members for recognizing a card.
var onlyOfCards = map[string]bool{
	"name": true, "version": true, "url": true, "supportedInterfaces": true, "skills": true, "capabilities": true,
}

// cardReader reads the members of a card by their type, and keeps the names of ignored ones.
type cardReader struct {
	card *translate.Card

	// The agent's place, in the words of 0.x.
	url, transport, protocol string
	additional               []translate.Interface
}

// member reads a member of the card.
func (r *cardReader) member(key string, v gjson.Result) {
	c := r.card
	switch key {
	case "name":
		c.Name = r.text(v, key)
	case "description":
		c.Description = r.text(v, key)
	case "version":
		c.Version = r.text(v, key)
	case "documentationUrl":
		c.DocumentationURL = r.text(v, key)
	case "iconUrl":
		c.IconURL = r.text(v, key)
	case "provider":
		r.provider(v, key)
	case "defaultInputModes":
		c.DefaultInputModes = r.words(v, key)
	case "defaultOutputModes":
		c.DefaultOutputModes = r.words(v, key)
	case "skills":
		c.Skills = r.skills(v, key)
	case "capabilities":
		r.capabilities(v, key)
	case "supportsAuthenticatedExtendedCard":
		c.Extended = r.flag(v, key) || c.Extended
	case "supportedInterfaces":
		c.Interfaces = r.interfaces(v, key)
	case "additionalInterfaces":
		r.additional = r.interfaces(v, key)
	case "url":
		r.url = r.text(v, key)
	case "preferredTransport":
		r.transport = r.text(v, key)
	case "protocolVersion":
		r.protocol = r.text(v, key)
	case "signatures":
		r.list(v, key, maxWords, func(string, gjson.Result) { c.Signed = true })
	}
}

func (r *cardReader) provider(v gjson.Result, at string) {
	r.object(v, at, func(name, at string, v gjson.Result) {
		switch name {
		case "organization":
			r.card.Provider.Organization = r.text(v, at)
		case "url":
			r.card.Provider.URL = r.text(v, at)
		}
	})
}

func (r *cardReader) capabilities(v gjson.Result, at string) {
	c := r.card
	r.object(v, at, func(name, at string, v gjson.Result) {
		switch name {
		case "streaming":
			c.Streaming = r.flag(v, at)
		case "pushNotifications":
			c.Push = r.flag(v, at)
		case "extendedAgentCard":
			c.Extended = r.flag(v, at) || c.Extended
		case "extensions":
			c.Extensions = r.extensions(v, at)
		}
	})
}

// extensions reads the extensions supported by an agent. One without a URI is none: a caller could not name it.
func (r *cardReader) extensions(v gjson.Result, at string) (list []translate.Extension) {
	r.list(v, at, maxExtensions, func(at string, v gjson.Result) {
		var x translate.Extension
		r.object(v, at, func(name, at string, v gjson.Result) {
			switch name {
			case "uri":
				x.URI = r.text(v, at)
			case "description":
				x.Description = r.text(v, at)
			case "required":
				x.Required = r.flag(v, at)
			case "params":
				if r.object(v, at, func(string, string, gjson.Result) {}) {
					x.Params = wire.Line(v)
				}
			}
		})
		if x.URI != "" {
			list = append(list, x)
		}
	})
	return list
}

// addInterfaces adds the interfaces of 0.x to those of 1.0, unless they are there already.
func (r *cardReader) addInterfaces() {
	if r.url != "" {
		r.addInterface(translate.Interface{
			URL: r.url, Binding: cmp.Or(r.transport, bindingJSONRPC), Version: r.protocol,
		})
	}
	for _, i := range r.additional {
		i.Version = r.protocol
		r.addInterface(i)
	}
}

func (r *cardReader) addInterface(i translate.Interface) {
	for _, have := range r.card.Interfaces {
		if have.URL == i.URL && have.Binding == i.Binding && (have.Version == i.Version || i.Version == "") {
			return
		}
	}
	r.card.Interfaces = append(r.card.Interfaces, i)
}

// ignore keeps the name of an ignored member.
func (r *cardReader) ignore(at string) {
	if len(r.card.Ignored) < maxIgnored {
		r.card.Ignored = append(r.card.Ignored, at)
	}
}

func (r *cardReader) text(v gjson.Result, at string) string {
	if v.Type != gjson.String {
		r.ignore(at)
	}
	return v.Str
}

func (r *cardReader) flag(v gjson.Result, at string) bool {
	if v.Type != gjson.True && v.Type != gjson.False {
		r.ignore(at)
	}
	return v.Type == gjson.True
}

// object calls f for every member of an object other than null, and reports whether v is an object.
func (r *cardReader) object(v gjson.Result, at string, f func(name, at string, v gjson.Result)) bool {
	if !v.IsObject() {
		r.ignore(at)
		return false
	}
	wire.Members(v, func(name string, v gjson.Result) { f(name, at+"."+name, v) })
	return true
}

// list calls f for every item of an array, up to most.
func (r *cardReader) list(v gjson.Result, at string, most int, f func(at string, v gjson.Result)) {
	if !v.IsArray() {
		r.ignore(at)
		return
	}
	n := 0
	jsonrpc.ForEach(v, func(_, v gjson.Result) bool {
		at := at + "." + strconv.Itoa(n)
		if n == most {
			r.ignore(at)
			return false
		}
		f(at, v)
		n++
		return true
	})
}

func (r *cardReader) words(v gjson.Result, at string) (list []string) {
	r.list(v, at, maxWords, func(at string, v gjson.Result) {
		if word := r.text(v, at); v.Type == gjson.String {
			list = append(list, word)
		}
	})
	return list
}

func (r *cardReader) skills(v gjson.Result, at string) (list []translate.Skill) {
	r.list(v, at, maxSkills, func(at string, v gjson.Result) {
		var s translate.Skill
		if r.object(v, at, func(name, at string, v gjson.Result) {
			switch name {
			case "id":
				s.ID = r.text(v, at)
			case "name":
				s.Name = r.text(v, at)
			case "description":
				s.Description = r.text(v, at)
			case "tags":
				s.Tags = r.words(v, at)
			case "examples":
				s.Examples = r.words(v, at)
			case "inputModes":
				s.InputModes = r.words(v, at)
			case "outputModes":
				s.OutputModes = r.words(v, at)
			}
		}) {
			list = append(list, s)
		}
	})
	return list
}

// interfaces reads supportedInterfaces (1.0) and additionalInterfaces (0.2, 0.3). Their members differ.
func (r *cardReader) interfaces(v gjson.Result, at string) (list []translate.Interface) {
	r.list(v, at, maxInterfaces, func(at string, v gjson.Result) {
		var i translate.Interface
		before := len(r.card.Ignored)
		r.object(v, at, func(name, at string, v gjson.Result) {
			switch name {
			case "url":
				i.URL = r.text(v, at)
			case "protocolBinding", "transport":
				i.Binding = r.text(v, at)
			case "protocolVersion":
				i.Version = r.text(v, at)
			case "tenant":
				i.Tenant = r.text(v, at)
			}
		})
		if len(r.card.Ignored) == before { // half of one would be another interface
			list = append(list, i)
		}
	})
	return list
}

// security keeps the card's members of authentication. A scheme of 1.0 is named by its type, an older one has a member
// type; a card for both has both.
func (r *cardReader) security(doc gjson.Result) (s translate.Security) {
	var old, required []byte
	wire.Members(doc, func(key string, v gjson.Result) {
		switch key {
		case "authentication":
			ok := r.object(v, key, func(string, string, gjson.Result) {})
			if s.Version == "" && ok {
				s.Version, s.Schemes = "0.1", wire.Line(v)
			}
		case "securitySchemes":
			generation := "0.2"
			if r.object(v, key, func(_, _ string, v gjson.Result) { // without its name: the agent chose it
				r.object(v, key, func(name, _ string, v gjson.Result) {
					if v.IsObject() && strings.HasSuffix(name, wrapper) {
						generation = "1.0"
					}
				})
			}) {
				s.Version, s.Schemes = generation, wire.Line(v)
			}
		case "security":
			old = r.requirements(v, key)
		case "securityRequirements":
			required = r.requirements(v, key)
		}
	})
	if s.Required = old; s.Version == "1.0" && required != nil || old == nil {
		s.Required = required
	}
	return s
}

// requirements returns the JSON of a list, and nil for any other value.
func (r *cardReader) requirements(v gjson.Result, at string) []byte {
	if !v.IsArray() {
		r.ignore(at)
		return nil
	}
	return wire.Line(v)
}

// wrapper ends the names of the members with a scheme in 1.0, such as mtlsSecurityScheme.
const wrapper = "SecurityScheme"
