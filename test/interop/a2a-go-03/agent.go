// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/a2aproject/a2a-go/a2a"
	"github.com/a2aproject/a2a-go/a2asrv"
	"github.com/a2aproject/a2a-go/a2asrv/eventqueue"
	"github.com/a2aproject/a2a-go/a2asrv/push"

	"github.com/aip-gateway/aip-gateway/test/interop/internal/agent"
)

func serve(f *agent.Flags) error {
	l, err := f.Listen()
	if err != nil {
		return err
	}
	card := &a2a.AgentCard{
		ProtocolVersion: "0.3.0", Name: "go-0.3-echo", Description: "A2A v0.3 on a2a-go", Version: "1",
		URL: f.URL + "/invoke", PreferredTransport: a2a.TransportProtocolJSONRPC,
		DefaultInputModes: []string{"text/plain"}, DefaultOutputModes: []string{"text/plain"},
		Capabilities: a2a.AgentCapabilities{Streaming: true, PushNotifications: true},
		Skills: []a2a.AgentSkill{
			{ID: "echo", Name: "Echo", Description: "Repeats what you say", Tags: []string{"test"}},
		},
	}
	if f.Key != "" {
		card.SecuritySchemes = a2a.NamedSecuritySchemes{
			"key": a2a.APIKeySecurityScheme{In: a2a.APIKeySecuritySchemeInHeader, Name: agent.KeyHeader},
		}
		card.Security = []a2a.SecurityRequirements{{"key": {}}}
	}
	// This SDK posts push notifications anywhere, private networks included.
	h := a2asrv.NewHandler(executor{}, a2asrv.WithPushNotifications(push.NewInMemoryStore(), push.NewHTTPPushSender(nil)))
	mux := http.NewServeMux()
	mux.Handle("/invoke", a2asrv.NewJSONRPCHandler(h))
	mux.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewStaticAgentCardHandler(card))
	return f.Serve(l, f.Guard(mux))
}

// executor carries turns out for the SDK.
type executor struct{}

// Execute carries out one turn.
func (executor) Execute(ctx context.Context, r *a2asrv.RequestContext, q eventqueue.Queue) error {
	turn := agent.Turn{Text: text(r.Message)}
	if t := r.StoredTask; t != nil {
		turn.Waiting = t.Status.State == a2a.TaskStateInputRequired || t.Status.State == a2a.TaskStateAuthRequired
	}
	return turn.Play(ctx, &stage{ctx: ctx, request: r, queue: q})
}

// Cancel ends a task; the SDK ends the context of a turn that is carried out.
func (executor) Cancel(ctx context.Context, r *a2asrv.RequestContext, q eventqueue.Queue) error {
	e := a2a.NewStatusUpdateEvent(r, a2a.TaskStateCanceled, nil)
	e.Final = true
	return q.Write(ctx, e)
}

func text(m *a2a.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		if t, ok := p.(a2a.TextPart); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// stage is a task at this SDK. It lives as long as a turn, hence the context.
type stage struct {
	ctx      context.Context
	request  *a2asrv.RequestContext
	queue    eventqueue.Queue
	artifact a2a.ArtifactID // the one that chunks are appended to
}

func (s *stage) Begin() error {
	if s.request.StoredTask == nil {
		if err := s.queue.Write(s.ctx, a2a.NewSubmittedTask(s.request, s.request.Message)); err != nil {
			return err
		}
	}
	return s.Status(agent.Working, "")
}

func (s *stage) Status(state agent.State, text string) error {
	var m *a2a.Message
	if text != "" {
		m = a2a.NewMessageForTask(a2a.MessageRoleAgent, s.request, a2a.TextPart{Text: text})
	}
	e := a2a.NewStatusUpdateEvent(s.request, a2a.TaskState(state), m)
	e.Final = state.Rests()
	return s.queue.Write(s.ctx, e)
}

func (s *stage) Artifact(c agent.Chunk) error {
	var p a2a.Part = a2a.TextPart{Text: c.Part.Text}
	if f := c.Part.File; f != nil {
		p = a2a.FilePart{File: a2a.FileBytes{
			FileMeta: a2a.FileMeta{Name: f.Name, MimeType: f.MediaType}, Bytes: base64.StdEncoding.EncodeToString(f.Bytes),
		}}
	} else if c.Part.Data != nil {
		p = a2a.DataPart{Data: c.Part.Data}
	}
	var e *a2a.TaskArtifactUpdateEvent
	if c.First {
		e = a2a.NewArtifactEvent(s.request, p)
		s.artifact = e.Artifact.ID
	} else {
		e = a2a.NewArtifactUpdateEvent(s.request, s.artifact, p)
	}
	e.Artifact.Name, e.LastChunk = c.Name, c.Last
	return s.queue.Write(s.ctx, e)
}

func (s *stage) Message(text string) error {
	return s.queue.Write(s.ctx, a2a.NewMessage(a2a.MessageRoleAgent, a2a.TextPart{Text: text}))
}
