// SPDX-License-Identifier: Apache-2.0

package acts

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Document is one file (ACTS §2).
type Document struct {
	ACTSVersion string `yaml:"acts_version"`
	// Extension is "aipconform/1" for a document with keys of FORMAT.md.
	Extension   string            `yaml:"extension"`
	SpecVersion string            `yaml:"spec_version"`
	SpecRef     string            `yaml:"spec_ref"`
	Metadata    Metadata          `yaml:"metadata"`
	Variables   map[string]string `yaml:"variables"`
	Include     []string          `yaml:"include"`
	Suites      []Suite           `yaml:"suites"`
	// File is the name by which Load read it.
	File string `yaml:"-"`
}

// Metadata says what a document is (ACTS §2).
type Metadata struct {
	Title       string   `yaml:"title"`
	Description string   `yaml:"description"`
	Authors     []string `yaml:"authors"`
	License     string   `yaml:"license"`
}

// Suite is a group of tests (ACTS §3.1).
type Suite struct {
	ID          string   `yaml:"id"`
	Name        string   `yaml:"name"`
	Description string   `yaml:"description"`
	Tags        []string `yaml:"tags"`
	// Protocols are those of its tests without protocols of their own, by id of a protocol file.
	Protocols []string `yaml:"protocols"`
	Tests     []Test   `yaml:"tests"`
}

// Level says how much a requirement binds (RFC 2119).
type Level string

// The levels of ACTS §3.2.
const (
	Must   Level = "must"
	Should Level = "should"
	May    Level = "may"
)

// Test is one scenario (ACTS §3.2). Its steps share nothing with those of other tests.
type Test struct {
	ID          string `yaml:"id"`
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	SpecRef     string `yaml:"spec_ref"`
	// Section is the number of the section that is tested, as 6.2.5.
	Section            string         `yaml:"section"`
	Level              Level          `yaml:"level"`
	Tags               []string       `yaml:"tags"`
	Transport          []string       `yaml:"transport"`
	Protocols          []string       `yaml:"protocols"`
	Preconditions      *Preconditions `yaml:"preconditions"`
	RequiresBehaviors  []string       `yaml:"requires_behaviors"`
	Origin             string         `yaml:"origin"`
	RunnerRequirements []string       `yaml:"runner_requirements"`
	// Needs are behaviors of the profile, Identities those that it must have beside the first Leader's.
	Needs      []string            `yaml:"needs"`
	Identities []string            `yaml:"identities"`
	Receivers  map[string]Receiver `yaml:"receivers"`
	Steps      []Step              `yaml:"steps"`
	Assertions []NamedAssertion    `yaml:"assertions"`
	// Line is where the test begins in its file.
	Line int `yaml:"-"`
}

// Preconditions say to what a test applies (ACTS §3.3).
type Preconditions struct {
	Capabilities map[string]any `yaml:"capabilities"`
	Skills       []struct {
		ID string `yaml:"id"`
	} `yaml:"skills"`
	Transport   []string `yaml:"transport"`
	Extensions  []string `yaml:"extensions"`
	Description string   `yaml:"description"`
}

// Receiver is a server of the runner for webhooks. It answers the requests with the given statuses in turn, and the
// last one for all others; without any, with 200.
type Receiver struct {
	Respond []int `yaml:"respond"`
	DelayMS int   `yaml:"delay_ms"`
}

// Step is one action, and what is expected of it (ACTS §4). It has exactly one action: Operation, Raw, Assertion,
// ClientResponse, OpenStream, AwaitEvent, Cut, Webhook, Parallel, Increasing, Ordered, SameEvents, Fold or Procedure.
type Step struct {
	ID          string `yaml:"id"`
	Description string `yaml:"description"`

	Operation string         `yaml:"operation"`
	Params    map[string]any `yaml:"params"`
	// Command is over the command in the params of the operation, wherever it is.
	Command map[string]any `yaml:"command"`
	// Envelope and Headers are over those of the operation's request.
	Envelope       map[string]any    `yaml:"envelope"`
	Headers        map[string]string `yaml:"headers"`
	Raw            *Raw              `yaml:"raw"`
	Assertion      *InlineAssertion  `yaml:"assertion"`
	ClientResponse *ClientResponse   `yaml:"client_response"`
	ExpectParsed   map[string]any    `yaml:"expect_parsed"`

	// OpenStream names a stream that stays open behind its step: Operation and Params begin it.
	OpenStream string         `yaml:"open_stream"`
	AwaitEvent *AwaitEvent    `yaml:"await_event"`
	Cut        string         `yaml:"cut"`
	Webhook    *ExpectWebhook `yaml:"expect_webhook"`
	Parallel   *Parallel      `yaml:"parallel"`
	Increasing *Selected      `yaml:"increasing"`
	Ordered    *Selected      `yaml:"ordered"`
	SameEvents *SameEvents    `yaml:"same_events"`
	Fold       *Fold          `yaml:"fold"`
	// Procedure names a function of the runner, for what the format cannot say.
	Procedure string `yaml:"procedure"`

	// As is the identity that the step has: leader, if empty.
	As string `yaml:"as"`

	Expect       *Expect       `yaml:"expect"`
	ExpectError  *ExpectError  `yaml:"expect_error"`
	ExpectStream *ExpectStream `yaml:"expect_stream"`
	// ExpectAny holds if one of its members does.
	ExpectAny       []Outcome        `yaml:"expect_any"`
	ExpectHandshake string           `yaml:"expect_handshake"`
	Open            *Open            `yaml:"open"`
	Lexical         []Lexical        `yaml:"lexical"`
	Assertions      []NamedAssertion `yaml:"assertions"`

	// Capture keeps values of the answer, by their paths.
	Capture  map[string]string `yaml:"capture"`
	Repeat   *Repeat           `yaml:"repeat"`
	DelayMS  int               `yaml:"delay_ms"`
	WithinMS int               `yaml:"within_ms"`
	// AbandonMS is after how long the test goes on without the answer, and is no failure. The request stays open until
	// the test ends.
	AbandonMS int `yaml:"abandon_ms"`
}

// Raw is a request as it goes over the wire (ACTS §4.4). One of the bodies at most is set.
type Raw struct {
	Method  string            `yaml:"method"`
	Path    string            `yaml:"path"`
	Headers map[string]string `yaml:"headers"`
	Body    any               `yaml:"body"`
	BodyRaw string            `yaml:"body_raw"`
	// BodyBase64 is for bytes that are no text.
	BodyBase64 string `yaml:"body_base64"`
	// Repeat puts a text, so many times, in place of "{{$repeat}}" in BodyRaw.
	Repeat *RepeatedText `yaml:"repeat"`
}

// RepeatedText is a text, so many times.
type RepeatedText struct {
	Of    string `yaml:"of"`
	Times int    `yaml:"times"`
}

// Expect says what an answer is like (ACTS §6.1). Body is an assertion about the domain object of an operation, or
// about the whole body of a raw step.
type Expect struct {
	Status  any            `yaml:"status"`
	Headers map[string]any `yaml:"headers"`
	Body    any            `yaml:"body"`
	// Error is an assertion about the error of an answer, by its JSON.
	Error any `yaml:"error"`
	// Envelope is an assertion about the whole answer of an operation.
	Envelope any `yaml:"envelope"`
}

// ExpectError says which error an answer is (ACTS §6.2). Error is a name of the protocol file, Code an assertion about
// its number.
type ExpectError struct {
	ErrorType string `yaml:"error_type"`
	Error     string `yaml:"error"`
	Code      any    `yaml:"code"`
	Message   any    `yaml:"message"`
	Details   any    `yaml:"details"`
	Data      any    `yaml:"data"`
	Status    any    `yaml:"status"`
}

// Outcome is one way in which a step may end.
type Outcome struct {
	ID              string        `yaml:"id"`
	Says            string        `yaml:"says"`
	Expect          *Expect       `yaml:"expect"`
	ExpectError     *ExpectError  `yaml:"expect_error"`
	ExpectStream    *ExpectStream `yaml:"expect_stream"`
	ExpectHandshake string        `yaml:"expect_handshake"`
}

// Open is a question that the specification leaves open. Its readings have an ID and say what they are; the report
// names the one seen. It is never a failure.
type Open struct {
	Question string    `yaml:"question"`
	Section  string    `yaml:"section"`
	Readings []Outcome `yaml:"readings"`
}

// ExpectStream says what events come (ACTS §7).
type ExpectStream struct {
	MinCount   int              `yaml:"min_count"`
	MaxCount   *int             `yaml:"max_count"`
	TimeoutMS  int              `yaml:"timeout_ms"`
	Ordering   string           `yaml:"ordering"`
	Events     []map[string]any `yaml:"events"`
	FinalEvent any              `yaml:"final_event"`
	EachEvent  any              `yaml:"each_event"`
	// Ends says whether the server has to end the stream: "server", or "" for either.
	Ends string `yaml:"ends"`
}

// AwaitEvent waits for an event of an open stream.
type AwaitEvent struct {
	Stream   string `yaml:"stream"`
	Match    any    `yaml:"match"`
	WithinMS int    `yaml:"within_ms"`
	// Ended waits for the end of the stream in place of an event.
	Ended bool `yaml:"ended"`
}

// ExpectWebhook waits for requests at a receiver. Match is an assertion about {method, path, headers, body}; each
// request that matches counts.
type ExpectWebhook struct {
	Receiver string `yaml:"receiver"`
	Match    any    `yaml:"match"`
	CountGTE int    `yaml:"count_gte"`
	CountLTE *int   `yaml:"count_lte"`
	WithinMS int    `yaml:"within_ms"`
}

// Parallel runs a step so many times at once.
type Parallel struct {
	Count         int            `yaml:"count"`
	Step          *Step          `yaml:"step"`
	CountDistinct *CountDistinct `yaml:"count_distinct"`
}

// CountDistinct counts the different values at a path of all answers.
type CountDistinct struct {
	Path   string `yaml:"path"`
	Equals any    `yaml:"equals"`
}

// Selected is a path in the answer of a step, or in the events of a stream.
type Selected struct {
	Source string `yaml:"source"`
	Path   string `yaml:"path"`
	// OrEqual permits that a value is that before it.
	OrEqual bool `yaml:"or_equal"`
}

// SameEvents compares the events of two streams, from the first that both have.
type SameEvents struct {
	Of  string `yaml:"of"`
	And string `yaml:"and"`
	// After leaves out events of Of whose number is not above it.
	After any `yaml:"after"`
}

// Fold joins the events of a stream to the object that they describe.
type Fold struct {
	Stream string `yaml:"stream"`
	Expect any    `yaml:"expect"`
}

// Lexical is an assertion about the bytes of a member: numbers, escapes, order.
type Lexical struct {
	Path    string `yaml:"path"`
	Matches string `yaml:"matches"`
}

// Repeat runs a step again until an expression holds (ACTS §9).
type Repeat struct {
	Until       string `yaml:"until"`
	MaxAttempts int    `yaml:"max_attempts"`
	DelayMS     int    `yaml:"delay_ms"`
	Backoff     string `yaml:"backoff"`
}

// InlineAssertion is about the response of an earlier step (ACTS §5.5).
type InlineAssertion struct {
	Source string      `yaml:"source"`
	Any    *Collection `yaml:"any"`
	All    *Collection `yaml:"all"`
	None   *Collection `yaml:"none"`
}

// NamedAssertion is about a value that a step has left (ACTS §5.5).
type NamedAssertion struct {
	ID          string      `yaml:"id"`
	Description string      `yaml:"description"`
	Source      string      `yaml:"source"`
	Path        string      `yaml:"path"`
	Match       any         `yaml:"match"`
	Any         *Collection `yaml:"any"`
	All         *Collection `yaml:"all"`
	None        *Collection `yaml:"none"`
}

// Collection matches the elements at a path with wildcards (ACTS §5.5).
type Collection struct {
	Path  string `yaml:"path"`
	Match any    `yaml:"match"`
}

// ClientResponse is a payload for a client to parse (ACTS §10). A runner of servers tests none of them.
type ClientResponse struct {
	Operation   string `yaml:"operation"`
	WirePayload any    `yaml:"wire_payload"`
}

// UnmarshalYAML reads an Expect. Keys other than its own are members of the body (ACTS §5.2).
func (e *Expect) UnmarshalYAML(node *yaml.Node) error {
	type plain struct {
		Status  any            `yaml:"status"`
		Headers map[string]any `yaml:"headers"`
		Body    any            `yaml:"body"`
		Error   any            `yaml:"error"`
		Around  any            `yaml:"envelope"`
		Members map[string]any `yaml:",inline"`
	}
	var read plain
	if err := node.Decode(&read); err != nil {
		return err
	}
	*e = Expect{Status: read.Status, Headers: read.Headers, Body: read.Body, Error: read.Error,
		Envelope: read.Around}
	if len(read.Members) > 0 {
		if read.Body != nil {
			return fmt.Errorf("line %d: expect has a body, and members beside it", node.Line)
		}
		e.Body = read.Members
	}
	return nil
}
