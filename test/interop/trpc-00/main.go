// SPDX-License-Identifier: Apache-2.0

// Command trpc-00 is an agent of A2A v0.1 on trpc-a2a-go v0.0.2, as its examples are, with a model by rule.
package main

import (
	"context"
	"log"
	"net/http"
	"strings"

	"trpc.group/trpc-go/trpc-a2a-go/protocol"
	"trpc.group/trpc-go/trpc-a2a-go/server"
	"trpc.group/trpc-go/trpc-a2a-go/taskmanager"

	"github.com/aip-gateway/aip-gateway/test/interop/model"
)

func main() { log.Fatal(model.Serve(serve)) }

func serve(url string) (http.Handler, error) {
	tasks, err := taskmanager.NewMemoryTaskManager(processor{})
	if err != nil {
		return nil, err
	}
	agent, err := server.NewA2AServer(server.AgentCard{
		Name: "trpc", Version: "1", URL: url + "/", Capabilities: server.AgentCapabilities{Streaming: true},
		DefaultInputModes: []string{"text"}, DefaultOutputModes: []string{"text"},
		Skills: []server.AgentSkill{{ID: "rule", Name: "rule"}},
	}, tasks)
	if err != nil {
		return nil, err
	}
	return agent.Handler(), nil
}

type processor struct{}

// Process carries out one message to a task.
func (processor) Process(ctx context.Context, _ string, m protocol.Message, h taskmanager.TaskHandle) error {
	var text strings.Builder
	for _, part := range m.Parts {
		switch p := part.(type) {
		case protocol.TextPart:
			text.WriteString(p.Text)
		case *protocol.TextPart:
			text.WriteString(p.Text)
		}
	}
	says := func(state protocol.TaskState, text string) error {
		m := protocol.NewMessage(protocol.MessageRoleAgent, []protocol.Part{protocol.NewTextPart(text)})
		return h.UpdateStatus(state, &m)
	}
	if text.String() == "ask" {
		return says(protocol.TaskStateInputRequired, "which colour?")
	}
	var all strings.Builder
	for piece, err := range model.Say(ctx, text.String(), 1) {
		switch {
		case ctx.Err() != nil: // the task is canceled, which the SDK says itself
			return ctx.Err()
		case err != nil:
			return says(protocol.TaskStateFailed, err.Error())
		}
		all.WriteString(piece)
		if err := says(protocol.TaskStateWorking, piece); err != nil {
			return err
		}
	}
	name := "answer"
	err := h.AddArtifact(protocol.Artifact{Name: &name, Parts: []protocol.Part{protocol.NewTextPart(all.String())}})
	if err != nil {
		return err
	}
	return h.UpdateStatus(protocol.TaskStateCompleted, nil)
}
