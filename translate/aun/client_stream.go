// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"strings"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// NewStream implements translate.Client.
func (c *client) NewStream(known []task.Product) translate.Stream {
	return &clientStream{client: c, begun: wire.NewBegun(known)}
}

// clientStream reads the events of one stream.
type clientStream struct {
	client *client
	talk   Talk  // of a turn by messages
	seq    int64 // of its last message
	begun  wire.Begun
}

// Event implements translate.Stream. A notification outside of task.*, or without a state or an artifact, means
// nothing.
func (s *clientStream) Event(event string, data []byte) (agent.Report, error) {
	rep, err := s.event(event, data)
	s.begun.Read(rep.Products, rep.Chunks)
	return rep, err
}

// event is Event, but for pieces at the beginning of a product.
func (s *clientStream) event(event string, data []byte) (agent.Report, error) {
	if event == "" {
		v, err := result(data)
		if err != nil {
			return agent.Report{}, err
		}
		rep, err := s.client.whole(v)
		if rep.EndsTurn() && !rep.RevisionDated && !rep.State.Terminal() {
			rep.State = task.Working // the answer to an input may show the state before it; the task follows
		}
		return rep, err
	}
	switch {
	case event == MessagesBegun:
		t, rep, err := begun(data)
		s.talk = t
		return rep, err
	case event == MessagesSeen:
		t, err := seen(data)
		s.talk = t
		return agent.Report{}, err
	case event == MessageReceived:
		v, err := wire.Value(data, "message")
		if err != nil {
			return agent.Report{}, err
		}
		s.seq = max(s.seq, jsonrpc.Member(v, "seq").Int())
		return s.talk.report(v)
	case event == MessagesOver:
		return s.talk.settle(agent.Report{State: task.AwaitingCompletion}, s.seq), nil
	case !strings.HasPrefix(event, EventPrefix):
		return agent.Report{}, nil
	}
	v, err := wire.Value(data, "notification")
	if err != nil {
		return agent.Report{}, err
	}
	m := membersOf(v)
	switch {
	case m.task.IsObject():
		return m.settled()
	case m.artifact.IsObject():
		return m.chunk()
	case wire.Absent(m.status):
		return agent.Report{}, nil
	}
	return m.report()
}
