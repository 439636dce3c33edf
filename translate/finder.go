// SPDX-License-Identifier: Apache-2.0

package translate

// A Finder is what a protocol knows about finding out which of its dialects an agent speaks, and where. Like a codec it
// does no I/O: its caller asks the questions.
type Finder interface {
	// Places returns the paths at which an agent's card may lie, the likeliest first, and the header fields to
	// ask for it with. They begin with a slash.
	Places() (paths []string, header []Field)
	// Card reads a card.
	Card(body []byte) (*Card, error)
	// Offers returns the ways to reach the agent that its card lists and the gateway has a dialect for, the
	// agent's favourite first. path is that of Places at which the card lay.
	Offers(c *Card, path string) []Offer
	// Unsupported returns why the gateway has no dialect for any of the ways that a card lists, and what to do about it:
	// a sentence for the operator. It is empty where there is a way, or nothing more is known.
	Unsupported(c *Card) string
	// Probes returns the questions that distinguish dialects, in the order to ask them, none of which changes
	// anything at an agent. id names a task in them, and must be one that no agent has.
	Probes(id string) []Probe
}

// Offer is a way to reach an agent that its card lists.
type Offer struct {
	URL     string // as the agent wrote it, unchecked; empty where the card names none: the one that is configured
	OwnPort bool   // it is another server than that of the card: a host and a port, with or without a scheme
	Dialect string // empty where the card does not name it
	Likely  string // the dialect where the card names none, and no answer of the agent proves another
	Why     string // by what the dialect is known, for people: "its card lists JSONRPC 1.0"
}

// Probe is a request that is only understood in one dialect. It is sent by POST.
type Probe struct {
	Dialect string
	Header  []Field
	Body    []byte
	Asks    string // what it asks for, for people: "GetTask"
	Why     string // what a Yes proves, for people: "it knows GetTask"
	// Judge reads the body of the answer, whatever the status of HTTP.
	Judge func(body []byte) Verdict
}

// Verdict is what the answer to a Probe says.
type Verdict uint8

// The verdicts.
const (
	Unsure Verdict = iota // nothing: this was no answer to the question
	Yes                   // the agent speaks the dialect
	No                    // the agent does not know the method
)
