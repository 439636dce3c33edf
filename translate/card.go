// SPDX-License-Identifier: Apache-2.0

package translate

// Card is what an agent says of itself, in the words of no version. What the agent leaves out is zero; a
// dialect that needs it fills the gap when it renders the card. A Card is not changed once it is made.
type Card struct {
	Name, Description, Version string // Version is the agent's own, not that of a protocol
	Provider                   Provider
	DocumentationURL, IconURL  string

	DefaultInputModes, DefaultOutputModes []string
	Skills                                []Skill

	Streaming bool // answers by streams
	Push      bool // tells webhooks
	Extended  bool // has a second card for callers that it knows

	// Interfaces are where the agent says that it can be reached, in its order. None of it is ever told to a
	// caller: callers reach the gateway.
	Interfaces []Interface
	// Security is how the agent wants its callers to prove who they are. It is for the gateway's operator, and
	// not told to callers either.
	Security Security

	Signed bool   // the agent signed its card: any change to it breaks the signature
	Raw    []byte // the card as the agent sent it, byte for byte
}

// Provider is who offers an agent.
type Provider struct{ Organization, URL string }

// Skill is one thing that an agent can do.
type Skill struct {
	ID, Name, Description   string
	Tags, Examples          []string
	InputModes, OutputModes []string // in place of the card's; empty where the card's apply
}

// Interface is one way to reach an agent, as its card lists it and unchecked.
type Interface struct {
	URL     string
	Binding string // JSONRPC, HTTP+JSON, GRPC, or what else the agent names
	Version string // the version of the protocol; empty where the agent names none
	Tenant  string // what every request has to name; empty for nothing
}

// Security is the part of a card that says how callers prove who they are, in the words of the version that it
// came in: those of different versions cannot be read alike.
type Security struct {
	Version  string // the version of the protocol that writes it so: 0.1, 0.2 (and 0.3), 1.0; empty where there is none
	Schemes  []byte // JSON: which schemes there are
	Required []byte // JSON: which of them a request needs; empty where the card does not say
}

// A Finder is what a protocol knows about finding out which of its dialects an agent speaks, and where. It is
// pure, as codecs are: the questions are asked by someone else.
type Finder interface {
	// Places returns the paths at which an agent's card may lie, the likeliest first, and the header fields to
	// ask for it with. They begin with a slash.
	Places() (paths []string, header []Field)
	// Card reads a card.
	Card(body []byte) (*Card, error)
	// Offers returns the ways to reach the agent that its card lists and the gateway has a dialect for, the
	// agent's favourite first.
	Offers(c *Card) []Offer
	// Unspoken returns why the gateway speaks none of the ways that a card lists, and what to do about it, a sentence
	// for the operator. It is empty where there is a way, or nothing more is known.
	Unspoken(c *Card) string
	// Probes returns the questions that tell dialects apart, in the order to ask them, none of which changes
	// anything at an agent. id names a task in them, and must be one that no agent has.
	Probes(id string) []Probe
}

// Offer is a way to reach an agent that its card lists.
type Offer struct {
	URL     string // as the agent wrote it, unchecked
	Dialect string // empty where the card does not tell
	Why     string // by what the dialect is known, for people: "its card lists JSONRPC 1.0"
}

// Probe is a request that is only understood in one dialect. It is sent by POST.
type Probe struct {
	Dialect string
	Header  []Field
	Body    []byte
	Why     string // what a Yes proves, for people: "it knows GetTask"
	// Judge reads the body of the answer, whatever the status of HTTP.
	Judge func(body []byte) Verdict
}

// Verdict is what the answer to a Probe says.
type Verdict uint8

// The verdicts.
const (
	Unsure Verdict = iota // nothing: this was not an answer to the question
	Yes                   // the agent speaks the dialect
	No                    // the agent does not know the method
)
