// SPDX-License-Identifier: Apache-2.0

// Command a2a-go-23 is an agent on a2a-go v2.3.1, which speaks A2A 1.0, with a model by rule.
package main

import (
	"context"
	"iter"
	"log"
	"net/http"
	"strings"
	"sync"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/aip-gateway/aip-gateway/test/interop/model"
)

func main() { log.Fatal(model.Serve(serve)) }

func serve(url string) (http.Handler, error) {
	card := &a2a.AgentCard{
		Name: "a2a-go", Description: "a2a-go", Version: "1",
		SupportedInterfaces: []*a2a.AgentInterface{a2a.NewAgentInterface(url+"/invoke", a2a.TransportProtocolJSONRPC)},
		DefaultInputModes:   []string{"text/plain"}, DefaultOutputModes: []string{"text/plain"},
		Skills:       []a2a.AgentSkill{{ID: "rule", Name: "rule", Description: "answers by rule", Tags: []string{"test"}}},
		Capabilities: a2a.AgentCapabilities{Streaming: true},
	}
	mux := http.NewServeMux()
	mux.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewStaticAgentCardHandler(card))
	mux.Handle("/invoke", a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(&executor{seen: make(map[string]int)})))
	return mux, nil
}

// executor answers by an artifact. Of a conversation it remembers how many messages there were.
type executor struct {
	mu   sync.Mutex
	seen map[string]int // by the id of the context
}

// Execute carries out one turn.
func (e *executor) Execute(ctx context.Context, q *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		var text strings.Builder
		for _, part := range q.Message.Parts {
			text.WriteString(part.Text())
		}
		status := func(state a2a.TaskState, said string) bool {
			var m *a2a.Message
			if said != "" {
				m = a2a.NewMessageForTask(a2a.MessageRoleAgent, q, a2a.NewTextPart(said))
			}
			return yield(a2a.NewStatusUpdateEvent(q, state, m), nil)
		}
		if q.StoredTask == nil && !yield(a2a.NewSubmittedTask(q, q.Message), nil) || !status(a2a.TaskStateWorking, "") {
			return
		}
		if text.String() == "ask" {
			status(a2a.TaskStateInputRequired, "which colour?")
			return
		}
		e.mu.Lock()
		e.seen[q.ContextID]++
		seen := e.seen[q.ContextID]
		e.mu.Unlock()
		artifact := a2a.ArtifactID("")
		for piece, err := range model.Say(ctx, text.String(), seen) {
			if err != nil {
				status(a2a.TaskStateFailed, err.Error())
				return
			}
			event := a2a.NewArtifactUpdateEvent(q, artifact, a2a.NewTextPart(piece))
			if artifact == "" {
				event = a2a.NewArtifactEvent(q, a2a.NewTextPart(piece))
				artifact = event.Artifact.ID
			}
			if !yield(event, nil) {
				return
			}
		}
		status(a2a.TaskStateCompleted, "")
	}
}

// Cancel ends a task; the SDK ends the context of a turn that is carried out.
func (*executor) Cancel(_ context.Context, q *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		yield(a2a.NewStatusUpdateEvent(q, a2a.TaskStateCanceled, nil), nil)
	}
}
