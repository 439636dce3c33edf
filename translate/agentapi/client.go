// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Options are an operator's decisions about an agent. The zero value is valid.
type Options struct {
	Expose Expose // the Leader's view of messages other than answers

	// CancelPath is the path for stopping a run, on the host of the agent's URL. It is for the transport; empty for none.
	CancelPath string
}

// Expose is the Leader's view of an agent's messages of other types than "message", such as its reasoning and its calls
// of tools.
type Expose uint8

// The values of Expose.
const (
	ExposeNone    Expose = iota // nothing
	ExposeStatus                // the data items of a status, when the message is complete
	ExposeProduct               // a product, with the type of the message as its name
)

var exposeNames = [...]string{"none", "status", "product"}

// ParseExpose returns the value with a name. The empty name is that of ExposeNone.
func ParseExpose(name string) (Expose, error) {
	for i, s := range exposeNames {
		if s == name || name == "" {
			return Expose(i), nil
		}
	}
	return 0, errors.New("expose is " + strconv.Quote(name) + ", but must be none, status or product")
}

// Client returns the side of the Agent API towards agents. It has no Getter and no Resubscriber: an agent knows only
// sessions, and its answer is gone with its connection.
func Client(o Options) translate.Client {
	if o.CancelPath != "" {
		return cancelingClient{client{Options: o}}
	}
	return client{Options: o}
}

type client struct {
	Options
	query translate.Query
}

// cancelingClient is the client of an agent with runs that can be stopped.
type cancelingClient struct{ client }

// Name implements translate.Client.
func (client) Name() string { return name }

// For implements translate.Client. The Agent API has no ids of requests, and agents know sessions and not tasks.
func (c client) For(q translate.Query) translate.Client {
	c.query = q
	return c
}

// For implements translate.Client.
func (c cancelingClient) For(q translate.Query) translate.Client {
	c.query = q
	return c
}

// Header implements translate.Client. The Agent API has no header fields of its own.
func (client) Header() []translate.Field { return nil }

// AlwaysStreams implements translate.Streamer: agents answer by a stream, whatever is asked for.
func (client) AlwaysStreams() {}

// TellsSession implements translate.SessionTeller.
func (client) TellsSession() {}

// AppendCancel implements translate.Canceler. The specification has no such request. AgentScope Runtime has a function
// for one. It names the session.
func (cancelingClient) AppendCancel(dst []byte, ref agent.Ref) []byte {
	return append(appendSession(append(dst, '{'), ref), '}')
}

// CancelsSession implements translate.SessionCanceler.
func (cancelingClient) CancelsSession() {}

// appendSession appends the names of the user and of the session. To an agent, all callers that leave them out are one.
// Both are the name that the gateway derives from the Leader and its session: another Leader never has the same, and
// the agent cannot recognize the Leader by it.
func appendSession(dst []byte, ref agent.Ref) []byte {
	dst = task.AppendString(append(dst, `"user_id":`...), ref.Session)
	return task.AppendString(append(dst, `,"session_id":`...), ref.Session)
}

// AppendTurn implements translate.Client. A continue is one more request of the session, since the agent remembers the
// session and not the task. It may answer the agent's requests (see asked).
func (client) AppendTurn(dst []byte, t *agent.Turn, _ bool) []byte {
	dst = append(dst, `{"input":[`...)
	dst = appendInput(dst, t)
	dst = appendSession(append(dst, `],"stream":true,`...), t.Ref)
	extensions := wire.WithPassed(t.Message.Extensions, t.Message.Params)
	return append(family.Append(dst, family.Of(extensions), extensions, requestNames), '}')
}

// appendInput appends the messages of a request, with commas between them. A caller that has answered by messages of
// the Agent API has said itself what they answer.
func appendInput(dst []byte, t *agent.Turn) []byte {
	items := wire.Items(&t.Message)
	if slices.ContainsFunc(items, answers) {
		return appendMessages(dst, items)
	}
	begin := len(dst)
	dst, rest := appendAnswers(dst, t, items)
	if len(dst) > begin && len(rest) == 0 {
		return dst
	}
	if len(dst) > begin {
		dst = append(dst, ',')
	}
	return appendMessages(dst, rest)
}

// Reply reads an answer other than a stream: the whole response, or an error.
func (c client) Reply(body []byte, known []task.Product) (agent.Report, error) {
	v, err := wire.Value(body, "answer")
	if err != nil {
		return agent.Report{}, err
	}
	m := membersOf(v)
	if m.object.Str != objectResponse {
		if err := m.refusal(); err != nil {
			return agent.Report{}, err
		}
		return agent.Report{}, wire.Refuse("the agent's answer is no response of the Agent API")
	}
	r := reader{expose: c.Expose, query: c.query}
	rep, err := r.response(&m)
	if err != nil {
		return agent.Report{}, err
	}
	rep.Products = append([]task.Product(nil), known...)
	for i := range rep.Chunks {
		rep.Products = wire.PutProduct(rep.Products, rep.Chunks[i].Product)
	}
	rep.Full, rep.Chunks = true, nil
	return rep, nil
}

// Push implements translate.Client. The Agent API has no webhooks.
func (client) Push([]byte, []task.Product) (agent.Report, error) { return agent.Report{}, nil }

// NewStream implements translate.Client. Agents make a new id for each message, so the known products distinguish
// nothing.
func (c client) NewStream([]task.Product) translate.Stream {
	return &stream{reader{expose: c.Expose, query: c.query}}
}

// refusal returns the error in an object outside of a response, nil for none: the agent's server has refused the
// request, or it has failed.
func (m *members) refusal() error {
	switch {
	case m.failure.Exists():
		text := wire.Reason(m.failure)
		if m.failure.IsObject() {
			text = errorText(m.failure.Get("code"), m.failure.Get("message"))
		}
		if strings.Contains(text, "already in RUNNING state") {
			return task.Errorf(task.AgentUnavailable, "the agent still works on an earlier message of the session").
				WithCause(translate.ErrBusy)
		}
		return refused(text)
	case m.detail.Exists(): // an invalid body
		return refused(wire.Reason(m.detail))
	}
	return nil
}

func refused(reason string) error {
	if reason = wire.Clean(reason, wire.MaxSentence); reason != "" {
		reason = ": " + reason
	}
	return wire.Refuse("the agent's server reports an error, and not a response%s", reason)
}

// errorText returns an error of the agent as one line. It is empty if there is none.
func errorText(code, message gjson.Result) string {
	word, text := wire.Clean(code.String(), wire.MaxWord), wire.Clean(message.String(), wire.MaxSentence)
	if word == "" || text == "" {
		return word + text
	}
	return word + ": " + text
}

// Interface guards.
var (
	_ translate.Streamer        = client{}
	_ translate.SessionTeller   = client{}
	_ translate.SessionCanceler = cancelingClient{}
	_ translate.TextStream      = (*stream)(nil)
)
