// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	a2agrpc "github.com/a2aproject/a2a-go/v2/a2agrpc/v1"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"github.com/a2aproject/a2a-go/v2/a2asrv/push"
	"github.com/a2aproject/a2a-go/v2/a2asrv/taskstore"

	"google.golang.org/grpc"

	"github.com/aip-gateway/aip-gateway/test/interop/internal/agent"
)

// serve serves JSON-RPC at /invoke, REST under /rest and gRPC, and A2A v0.3 at /invoke03 and under /rest03.
func serve(f *agent.Flags, compat bool) error {
	l, err := f.Listen()
	if err != nil {
		return err
	}
	card := &a2a.AgentCard{
		Name: "go-1.0-echo", Description: "A2A v1.0 on a2a-go", Version: "1",
		SupportedInterfaces: []*a2a.AgentInterface{
			a2a.NewAgentInterface(f.URL+"/invoke", a2a.TransportProtocolJSONRPC),
			a2a.NewAgentInterface(f.URL+"/rest", a2a.TransportProtocolHTTPJSON),
			a2a.NewAgentInterface(f.Address, a2a.TransportProtocolGRPC),
		},
		DefaultInputModes: []string{"text/plain"}, DefaultOutputModes: []string{"text/plain"},
		Capabilities: a2a.AgentCapabilities{Streaming: true, PushNotifications: true},
		Skills: []a2a.AgentSkill{
			{ID: "echo", Name: "Echo", Description: "Repeats what you say", Tags: []string{"test"}},
		},
	}
	if f.Key != "" {
		card.SecuritySchemes = a2a.NamedSecuritySchemes{
			"key": a2a.APIKeySecurityScheme{Location: a2a.APIKeySecuritySchemeLocationHeader, Name: agent.KeyHeader},
		}
		card.SecurityRequirements = a2a.SecurityRequirementsOptions{{"key": {}}}
	}
	// Every caller is the same user: the SDK lists tasks for users only.
	tasks := taskstore.NewInMemory(
		&taskstore.InMemoryStoreConfig{Authenticator: func(context.Context) (string, error) { return "anyone", nil }},
	)
	h := a2asrv.NewHandler(
		executor{},
		a2asrv.WithCapabilityChecks(&card.Capabilities),
		a2asrv.WithTaskStore(tasks),
		a2asrv.WithPushNotifications(
			push.NewInMemoryStore(),
			push.NewHTTPPushSender(&push.HTTPSenderConfig{AllowPrivateNetworks: true}),
		),
	)
	mux := http.NewServeMux()
	mux.Handle("/invoke", a2asrv.NewJSONRPCHandler(h))
	mux.Handle("/rest/", http.StripPrefix("/rest", a2asrv.NewRESTHandler(h)))
	calls := grpc.NewServer()
	a2agrpc.NewHandler(h).RegisterWith(calls)
	mux.Handle("/lf.a2a.v1.A2AService/", calls)
	if compat {
		card.SupportedInterfaces = append(
			card.SupportedInterfaces,
			&a2a.AgentInterface{
				URL:             f.URL + "/invoke03",
				ProtocolBinding: a2a.TransportProtocolJSONRPC,
				ProtocolVersion: a2av0.Version,
			},
			&a2a.AgentInterface{
				URL:             f.URL + "/rest03",
				ProtocolBinding: a2a.TransportProtocolHTTPJSON,
				ProtocolVersion: a2av0.Version,
			},
		)
		mux.Handle("/invoke03", a2av0.NewJSONRPCHandler(h))
		mux.Handle("/rest03/", http.StripPrefix("/rest03", a2av0.NewRESTHandler(h)))
		mux.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewAgentCardHandler(a2av0.NewStaticAgentCardProducer(card)))
	} else {
		mux.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewStaticAgentCardHandler(card))
	}
	return f.Serve(l, f.Guard(mux))
}

// executor carries turns out for the SDK.
type executor struct{}

// errLeft ends a turn whose events have no reader any more.
var errLeft = errors.New("the SDK takes no more events")

// Execute carries out one turn.
func (executor) Execute(ctx context.Context, ec *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		turn := agent.Turn{Text: text(ec.Message)}
		if t := ec.StoredTask; t != nil {
			turn.Waiting = t.Status.State == a2a.TaskStateInputRequired || t.Status.State == a2a.TaskStateAuthRequired
		}
		err := turn.Play(ctx, &stage{context: ec, yield: yield})
		if err != nil && !errors.Is(err, errLeft) {
			yield(nil, err)
		}
	}
}

// Cancel ends a task; the SDK ends the context of a turn that is carried out.
func (executor) Cancel(_ context.Context, ec *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		yield(a2a.NewStatusUpdateEvent(ec, a2a.TaskStateCanceled, nil), nil)
	}
}

func text(m *a2a.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		b.WriteString(p.Text())
	}
	return b.String()
}

// stage is a task at this SDK. It lives as long as a turn.
type stage struct {
	context  *a2asrv.ExecutorContext
	yield    func(a2a.Event, error) bool
	artifact a2a.ArtifactID // the one that chunks are appended to
}

func (s *stage) send(e a2a.Event) error {
	if !s.yield(e, nil) {
		return errLeft
	}
	return nil
}

func (s *stage) Begin() error {
	if s.context.StoredTask == nil {
		if err := s.send(a2a.NewSubmittedTask(s.context, s.context.Message)); err != nil {
			return err
		}
	}
	return s.Status(agent.Working, "")
}

func (s *stage) Status(state agent.State, text string) error {
	var m *a2a.Message
	if text != "" {
		m = a2a.NewMessageForTask(a2a.MessageRoleAgent, s.context, a2a.NewTextPart(text))
	}
	name := "TASK_STATE_" + strings.ToUpper(strings.ReplaceAll(string(state), "-", "_"))
	return s.send(a2a.NewStatusUpdateEvent(s.context, a2a.TaskState(name), m))
}

func (s *stage) Artifact(c agent.Chunk) error {
	p := a2a.NewTextPart(c.Part.Text)
	if f := c.Part.File; f != nil {
		p = a2a.NewRawPart(f.Bytes)
		p.Filename, p.MediaType = f.Name, f.MediaType
	} else if c.Part.Data != nil {
		p = a2a.NewDataPart(c.Part.Data)
	}
	var e *a2a.TaskArtifactUpdateEvent
	if c.First {
		e = a2a.NewArtifactEvent(s.context, p)
		s.artifact = e.Artifact.ID
	} else {
		e = a2a.NewArtifactUpdateEvent(s.context, s.artifact, p)
	}
	e.Artifact.Name, e.LastChunk = c.Name, c.Last
	return s.send(e)
}

func (s *stage) Message(text string) error {
	return s.send(a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewTextPart(text)))
}
