// SPDX-License-Identifier: Apache-2.0

package translate

// A Finder is a protocol's knowledge for finding out the dialect of an agent, and its place. Like a codec it does no
// I/O: its caller asks the questions.
type Finder interface {
	// Places returns the possible paths of an agent's card, the likeliest first, and the header fields to ask for it with.
	// They begin with a slash.
	Places() (paths []string, header []Field)
	// Card reads a card.
	Card(body []byte) (*Card, error)
	// Offers returns the ways to reach the agent that its card lists and the gateway has a dialect for, the agent's
	// favourite first. path is the path of the card, one of Places.
	Offers(c *Card, path string) []Offer
	// Unsupported returns a sentence for the operator: the reason why the gateway has no dialect for any of the ways in a
	// card, and the remedy. It is empty if there is a way, or nothing more is known.
	Unsupported(c *Card) string
	// Probes returns the questions for distinguishing dialects, in the order to ask them. None of them changes anything at
	// an agent. id names a task in them, and must be one that no agent has.
	Probes(id string) []Probe
}

// Offer is a way to reach an agent, from its card.
type Offer struct {
	URL     string // as the agent wrote it, unchecked; empty if the card names none: the configured one
	OwnPort bool   // it is another server than the card's: a host and a port, with or without a scheme
	Dialect string // empty if the card does not name it
	Likely  string // the dialect if the card names none, and no answer of the agent proves another
	Why     string // by what the dialect is known, for people: "its card lists JSONRPC 1.0"
}

// Probe is a request understood in one dialect only. It is sent by POST.
type Probe struct {
	Dialect string
	Header  []Field
	Body    []byte
	Asks    string // what it asks for, for people: "GetTask"
	Why     string // what a Yes proves, for people: "it knows GetTask"
	// Judge reads the body of the answer, with any status of HTTP.
	Judge func(body []byte) Verdict
}

// Verdict is the result of a Probe.
type Verdict uint8

// The verdicts.
const (
	Unsure Verdict = iota // nothing: this was no answer to the question
	Yes                   // the agent speaks the dialect
	No                    // the agent does not know the method
)
