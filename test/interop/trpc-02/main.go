// SPDX-License-Identifier: Apache-2.0

// Command trpc-02 is an agent on trpc-a2a-go v0.2.5, as its examples are, with a model by rule.
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
	yes := true
	tasks, err := taskmanager.NewMemoryTaskManager(processor{})
	if err != nil {
		return nil, err
	}
	agent, err := server.NewA2AServer(server.AgentCard{
		Name: "trpc", Description: "trpc-a2a-go", Version: "1", URL: url + "/",
		Capabilities:      server.AgentCapabilities{Streaming: &yes},
		DefaultInputModes: []string{"text"}, DefaultOutputModes: []string{"text"},
		Skills: []server.AgentSkill{{ID: "rule", Name: "rule", Tags: []string{"test"}}},
	}, tasks)
	if err != nil {
		return nil, err
	}
	return agent.Handler(), nil
}

// processor makes a task of each message, also of one to a task that asks.
type processor struct{}

// ProcessMessage answers a stream while it works, and a single request when it has.
func (processor) ProcessMessage(ctx context.Context, m protocol.Message, o taskmanager.ProcessOptions,
	h taskmanager.TaskHandler) (*taskmanager.MessageProcessingResult, error) {
	id, err := h.BuildTask(nil, m.ContextID)
	if err != nil {
		return nil, err
	}
	turn := &turn{tasks: h, id: id, text: text(m)}
	for _, said := range h.GetMessageHistory() {
		if said.Role == protocol.MessageRoleUser {
			turn.seen++
		}
	}
	if o.Streaming {
		events, err := h.SubscribeTask(&id)
		if err != nil {
			return nil, err
		}
		go func() {
			defer events.Close()
			turn.play(context.WithoutCancel(ctx)) // the request ends with its reader
		}()
		return &taskmanager.MessageProcessingResult{StreamingEvents: events}, nil
	}
	turn.play(ctx)
	task, err := h.GetTask(&id)
	if err != nil {
		return nil, err
	}
	done := *task.Task()
	return &taskmanager.MessageProcessingResult{Result: &done}, nil
}

func text(m protocol.Message) string {
	var all strings.Builder
	for _, part := range m.Parts {
		if p, ok := part.(*protocol.TextPart); ok {
			all.WriteString(p.Text)
		}
	}
	return all.String()
}

// turn is a message that is worked on. The SDK tells the readers of the stream what is done to the task.
type turn struct {
	tasks taskmanager.TaskHandler
	id    string
	text  string
	seen  int
}

func (t *turn) play(ctx context.Context) {
	t.status(protocol.TaskStateWorking, "")
	if t.text == "ask" {
		t.status(protocol.TaskStateInputRequired, "which colour?")
		return
	}
	var all strings.Builder
	for piece, err := range model.Say(ctx, t.text, t.seen) {
		if err != nil {
			t.status(protocol.TaskStateFailed, err.Error())
			return
		}
		all.WriteString(piece)
		if !t.status(protocol.TaskStateWorking, piece) {
			return
		}
	}
	name := "answer"
	err := t.tasks.AddArtifact(&t.id, protocol.Artifact{ArtifactID: "answer", Name: &name,
		Parts: []protocol.Part{protocol.NewTextPart(all.String())}}, true, false)
	if err != nil {
		return
	}
	t.status(protocol.TaskStateCompleted, "")
}

// status reports whether the task is still there: one that is canceled is not.
func (t *turn) status(state protocol.TaskState, text string) bool {
	var m *protocol.Message
	if text != "" {
		said := protocol.NewMessage(protocol.MessageRoleAgent, []protocol.Part{protocol.NewTextPart(text)})
		m = &said
	}
	return t.tasks.UpdateTaskState(&t.id, state, m) == nil
}
