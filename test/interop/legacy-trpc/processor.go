// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"strings"
	"sync"

	"trpc.group/trpc-go/trpc-a2a-go/protocol"
	"trpc.group/trpc-go/trpc-a2a-go/taskmanager"

	"github.com/aip-gateway/aip-gateway/test/interop/internal/agent"
)

// processor carries turns out for the SDK, which cannot know whether a task waits for an answer.
type processor struct {
	push    pusher
	mu      sync.Mutex
	waiting map[string]bool // by the id of the task
}

// Process carries out one turn.
func (p *processor) Process(ctx context.Context, id string, m protocol.Message, h taskmanager.TaskHandle) error {
	p.mu.Lock()
	waiting := p.waiting[id]
	delete(p.waiting, id)
	p.mu.Unlock()
	turn := agent.Turn{Text: text(m), Waiting: waiting, Legacy: true}
	return turn.Play(ctx, stage{p, id, h})
}

// OnTaskStatusUpdate is called by the SDK at every change of a task's status.
func (p *processor) OnTaskStatusUpdate(
	ctx context.Context,
	id string,
	_ protocol.TaskState,
	_ *protocol.Message,
) error {
	return p.push.notify(ctx, id)
}

func text(m protocol.Message) string {
	var b strings.Builder
	for _, part := range m.Parts {
		switch t := part.(type) {
		case protocol.TextPart:
			b.WriteString(t.Text)
		case *protocol.TextPart:
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// stage is a task at this SDK, which makes it and puts it to work by itself.
type stage struct {
	processor *processor
	id        string
	handle    taskmanager.TaskHandle
}

func (s stage) Begin() error { return nil }

func (s stage) Status(state agent.State, text string) error {
	if state == agent.InputRequired {
		s.processor.mu.Lock()
		s.processor.waiting[s.id] = true
		s.processor.mu.Unlock()
	}
	m := protocol.NewMessage(protocol.MessageRoleAgent, []protocol.Part{protocol.NewTextPart(text)})
	return s.handle.UpdateStatus(protocol.TaskState(state), &m)
}

func (s stage) Artifact(c agent.Chunk) error {
	var part protocol.Part
	switch {
	case c.Part.File != nil:
		f := c.Part.File
		part = protocol.FilePart{Type: protocol.PartTypeFile, File: protocol.FileContent{
			Name: &f.Name, MimeType: &f.MediaType, Bytes: pointer(base64.StdEncoding.EncodeToString(f.Bytes)),
		}}
	case c.Part.Data != nil:
		part = protocol.DataPart{Type: protocol.PartTypeData, Data: c.Part.Data}
	default:
		part = protocol.NewTextPart(c.Part.Text)
	}
	a := protocol.Artifact{Name: &c.Name, Parts: []protocol.Part{part}, LastChunk: &c.Last}
	if !c.First || !c.Last {
		a.Append = pointer(!c.First)
	}
	return s.handle.AddArtifact(a)
}

// Message is never called: a Turn of A2A v0.1 has none.
func (s stage) Message(text string) error { panic("no messages without a task in A2A v0.1: " + text) }
