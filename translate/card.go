// SPDX-License-Identifier: Apache-2.0

package translate

// Card is an agent's description of itself, independent of any version. Fields left out by the agent are zero; a
// dialect that needs one fills the gap when it writes the card. A Card is not changed once it is made.
type Card struct {
	Name, Description, Version string // Version is the agent's own, not a protocol's
	Provider                   Provider
	DocumentationURL, IconURL  string

	DefaultInputModes, DefaultOutputModes []string
	Skills                                []Skill

	Streaming bool // it answers by streams
	Push      bool // it notifies webhooks
	Extended  bool // it has a second card for known callers

	Extensions []Extension // of A2A, supported by the agent

	// Interfaces are the ways to reach the agent, as its card lists them. No caller is shown any of them: callers reach
	// the gateway.
	Interfaces []Interface
	// Security is the authentication that the agent wants of its callers. It is for the gateway's operator, and not shown
	// to callers either.
	Security Security

	Signed bool   // the agent signed its card: any change to it breaks the signature
	Raw    []byte // the card as the agent sent it, byte for byte

	Ignored []string // members of a wrong type, such as skills.0.tags: the first few, for the operator
}

// Provider is the organization behind an agent.
type Provider struct{ Organization, URL string }

// Skill is one skill of an agent.
type Skill struct {
	ID, Name, Description   string
	Tags, Examples          []string
	InputModes, OutputModes []string // in place of the card's; empty if the card's apply
}

// Extension is an extension of the protocol, supported by an agent.
type Extension struct {
	URI, Description string
	Required         bool   // callers must activate it
	Params           []byte // JSON, an object on one line; nil for none
}

// Interface is one way to reach an agent, as its card lists it and unchecked.
type Interface struct {
	URL     string
	Binding string // JSONRPC, HTTP+JSON, GRPC, or another name of the agent
	Version string // the version of the protocol; empty if the agent names none
	Tenant  string // a tenant to name in every request; empty for none
}

// Security is the part of a card about the authentication of callers, in the form of its version: the forms of
// different versions cannot be read alike.
type Security struct {
	Version  string // the version of the protocol with this form: 0.1, 0.2 (and 0.3), 1.0; empty for none
	Schemes  []byte // JSON: the schemes
	Required []byte // JSON: those required for a request; empty if the card does not say
}
