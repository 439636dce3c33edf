// SPDX-License-Identifier: Apache-2.0

package aunpeer

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"time"
)

// Payload is a payload of message.send, as far as agents use it.
type Payload struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ThreadID string `json:"thread_id,omitempty"`
	ChatID   string `json:"chat_id,omitempty"`
	ReplyTo  string `json:"reply_to,omitempty"`
	Event    string `json:"event,omitempty"`
	State    string `json:"state,omitempty"`
	Data     any    `json:"data,omitempty"`
	Items    []Item `json:"items,omitempty"`

	Attachments []Attachment `json:"attachments,omitempty"`
}

// UnmarshalJSON reads a payload. A string is a text.
func (p *Payload) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &p.Text)
	}
	type plain Payload
	return json.Unmarshal(text, (*plain)(p))
}

// Item is a part of a thought.
type Item struct {
	Kind string `json:"kind"`
	Text string `json:"text,omitempty"`
}

// Attachment is a file in a Payload.
type Attachment struct {
	URL         string `json:"url"`
	Filename    string `json:"filename,omitempty"`
	ContentType string `json:"content_type,omitempty"`
}

// Received is a message received by the agent. N is the number of messages received by then.
type Received struct {
	ID, Type, Text, Thread, Chat string
	N                            int
}

// message takes a message: the agent reads it, or it is delivered to the connections of its recipient.
func (g *Gateway) message(from string, params json.RawMessage) (any, *Error) {
	var p struct {
		To        string
		MessageID string `json:"message_id"`
		Payload   Payload
		Encrypted bool
	}
	if err := json.Unmarshal(params, &p); err != nil || p.To == "" || p.Encrypted {
		return nil, &Error{Code: -32602, Message: "params"}
	}
	if p.MessageID == "" {
		p.MessageID = rand.Text()
	}
	if p.To == g.Agent {
		g.mu.Lock()
		repeated := g.taken[from+" "+p.MessageID]
		g.taken[from+" "+p.MessageID] = true
		g.mu.Unlock()
		if repeated {
			return map[string]any{"message_id": p.MessageID, "status": "duplicate"}, nil
		}
		g.read(from, p.MessageID, p.Payload)
	} else {
		g.deliver(from, p.To, p.MessageID, p.Payload)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seq++
	return map[string]any{
		"message_id": p.MessageID, "seq": g.seq, "timestamp": time.Now().UnixMilli(), "status": "sent",
		"delivery_mode": "fanout",
	}, nil
}

// Texts returns the texts received by an agent with a Rule, in order.
func (g *Gateway) Texts() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.texts)
}

// delivery is a message as its recipient gets it.
type delivery struct {
	to     string
	seq    int
	params map[string]any
}

// deliver keeps a message for an AID, and sends it to all its connections.
func (g *Gateway) deliver(from, to, id string, payload any) {
	g.mu.Lock()
	g.seq++
	sealed := g.Encrypts && from == g.Agent
	if sealed {
		payload = map[string]any{"type": "e2ee.p2p_encrypted", "ciphertext": "…"}
	}
	d := delivery{to: to, seq: g.seq, params: map[string]any{
		"from": from, "to": to, "message_id": id, "seq": g.seq, "payload": payload,
		"timestamp": time.Now().UnixMilli(), "delivery_mode": "fanout", "encrypted": sealed,
	}}
	g.inbox = append(g.inbox, d)
	g.mu.Unlock()
	for _, s := range g.open() {
		if s.caller() == to {
			_ = s.Notify(g.closed, "event/message.received", d.params)
		}
	}
}

// maxPull is the most messages of one message.pull: few, so that clients need more than one.
const maxPull = 3

// pull returns the messages for an AID after a place in its inbox.
func (g *Gateway) pull(aid string, params json.RawMessage) (any, *Error) {
	var p struct {
		After int `json:"after_seq"`
		Limit int
	}
	if err := json.Unmarshal(params, &p); err != nil || p.Limit < 1 || p.Limit > 200 {
		return nil, &Error{Code: -32602, Message: "params"}
	}
	messages := []map[string]any{}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, d := range g.inbox {
		if d.to == aid && d.seq > p.After && len(messages) < min(p.Limit, maxPull) {
			messages, p.After = append(messages, d.params), d.seq
		}
	}
	return map[string]any{"messages": messages, "count": len(messages), "latest_seq": p.After}, nil
}

// read has the agent read a message: a new thread begins a script, and a message in a thread answers the question of
// its script, if there is one.
func (g *Gateway) read(from, id string, payload Payload) {
	if g.Rule != nil {
		g.mu.Lock()
		g.texts = append(g.texts, payload.Text)
		n := len(g.texts)
		g.mu.Unlock()
		g.running.Go(func() {
			g.Rule(Received{ID: id, Type: payload.Type, Text: payload.Text, Thread: payload.ThreadID, Chat: payload.ChatID,
				N: n}, func(said map[string]any) { g.deliver(g.Agent, from, rand.Text(), said) })
		})
		return
	}
	thread := payload.ThreadID
	g.mu.Lock()
	answers, ok := g.threads[from+" "+thread]
	g.mu.Unlock()
	if ok {
		select {
		case answers <- payload.Text:
			return
		default:
		}
	}
	c := &conversation{gateway: g, with: from, thread: thread, first: id, answers: make(chan string, 1)}
	g.mu.Lock()
	g.threads[from+" "+thread] = c.answers
	g.mu.Unlock()
	g.running.Add(1)
	go func() {
		defer g.running.Done()
		_ = Run(g.closed, payload.Text, c) // it ends with the gateway
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.threads[from+" "+thread] == c.answers {
			delete(g.threads, from+" "+thread)
		}
	}()
}

// conversation is a task of an agent with messages only.
type conversation struct {
	gateway *Gateway
	with    string
	thread  string
	first   string // the id of its first message
	answers chan string
}

func (c *conversation) say(p Payload) error {
	p.ThreadID, p.ReplyTo = c.thread, c.first
	c.gateway.deliver(c.gateway.Agent, c.with, rand.Text(), p)
	return nil
}

func (c *conversation) event(name string, data map[string]any) error {
	if data == nil {
		data = make(map[string]any)
	}
	data["task_id"] = "run-" + c.first
	return c.say(Payload{Type: "event", Event: name, Data: data})
}

// Accept implements Work.
func (c *conversation) Accept(context.Context) error {
	if c.gateway.Quiet {
		return nil
	}
	return c.event("task.started", nil)
}

// Reject implements Work. An agent need not answer.
func (c *conversation) Reject(_ context.Context, reason string) error {
	return c.event("task.error", map[string]any{"error_code": reason})
}

// Ask implements Work. A text alone is no sign of a question.
func (c *conversation) Ask(ctx context.Context, question string) (string, error) {
	asked := Payload{Type: "text", Text: question}
	if c.gateway.Marks {
		asked.Type, asked.State = "status", "input_required"
	}
	if err := c.say(asked); err != nil {
		return "", err
	}
	select {
	case answer := <-c.answers:
		return answer, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Piece implements Work: each piece is a message of its own.
func (c *conversation) Piece(_ context.Context, a Artifact, _ bool) error {
	text, _ := a.Content.(string)
	return c.say(Payload{Type: "text", Text: text})
}

// Complete implements Work. A text sent in pieces is not repeated.
func (c *conversation) Complete(_ context.Context, artifacts ...Artifact) error {
	for _, a := range artifacts {
		p := Payload{Type: "text"}
		switch content := a.Content.(type) {
		case string:
			p.Text = content
		case json.RawMessage:
			p.Type, p.Data = "json", content
		case []Artifact:
			p.Type = "file"
			for _, f := range content {
				url, _ := f.Content.(string)
				p.Attachments = append(p.Attachments, Attachment{url, f.Name, f.MIMEType})
			}
		}
		if a.Name == "out" {
			continue
		}
		if err := c.say(p); err != nil {
			return err
		}
	}
	return c.event("task.completed", map[string]any{"duration_ms": 1})
}

// Fail implements Work.
func (c *conversation) Fail(_ context.Context, reason string) error {
	return c.event("task.error", map[string]any{"error_code": reason})
}
