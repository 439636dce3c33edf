// SPDX-License-Identifier: Apache-2.0

package translate

// Card is how an agent describes itself, independent of any version. What the agent leaves out is zero; a dialect that
// needs it fills the gap when it writes the card. A Card is not changed once it is made.
type Card struct {
	Name, Description, Version string // Version is the agent's own, not that of a protocol
	Provider                   Provider
	DocumentationURL, IconURL  string

	DefaultInputModes, DefaultOutputModes []string
	Skills                                []Skill

	Streaming bool // it answers by streams
	Push      bool // it notifies webhooks
	Extended  bool // it has a second card for callers that it knows

	Extensions []Extension // of A2A that it supports

	// Interfaces are where the agent says that it can be reached, in its order. No caller is
	// shown any of it: callers reach the gateway.
	Interfaces []Interface
	// Security is how the agent wants its callers to prove who they are. It is for the gateway's operator, and
	// not shown to callers either.
	Security Security

	Signed bool   // the agent signed its card: any change to it breaks the signature
	Raw    []byte // the card as the agent sent it, byte for byte

	Ignored []string // members that have a wrong type, such as skills.0.tags: the first few, for the operator
}

// Provider is the organization that offers an agent.
type Provider struct{ Organization, URL string }

// Skill is one thing that an agent can do.
type Skill struct {
	ID, Name, Description   string
	Tags, Examples          []string
	InputModes, OutputModes []string // in place of the card's; empty where the card's apply
}

// Extension is an extension of the protocol that an agent supports.
type Extension struct {
	URI, Description string
	Required         bool   // callers must activate it
	Params           []byte // JSON, an object on one line; nil for none
}

// Interface is one way to reach an agent, as its card lists it and unchecked.
type Interface struct {
	URL     string
	Binding string // JSONRPC, HTTP+JSON, GRPC, or what else the agent names
	Version string // the version of the protocol; empty where the agent names none
	Tenant  string // a tenant that every request must name; empty for none
}

// Security is the part of a card that says how callers prove who they are, in the form of the version that it came in:
// the forms of different versions cannot be read alike.
type Security struct {
	Version  string // the version of the protocol that writes it so: 0.1, 0.2 (and 0.3), 1.0; empty where there is none
	Schemes  []byte // JSON: the schemes
	Required []byte // JSON: which of them a request needs; empty where the card does not say
}
