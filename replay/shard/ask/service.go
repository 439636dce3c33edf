// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/task"
)

// Service is a function of the owner of a shard, or of each process. Its argument and result have a form in JSON. It
// may be used by any number of goroutines at once.
type Service[Q, A any] struct {
	set    *shard.Set
	name   string
	answer func(ctx context.Context, shard int, question Q) (A, error)
	// Once has no question asked again if a process may have carried it out.
	Once bool
}

// New makes a service, and has it answer the questions of other processes. answer is called with a shard, or with
// shard.AnyShard for a question to all. Its error may be a replay.ErrClosed: then the owner is asked again.
func New[Q, A any](
	set *shard.Set, name string, answer func(ctx context.Context, shard int, question Q) (A, error),
) *Service[Q, A] {
	s := &Service[Q, A]{set: set, name: name, answer: answer}
	if peers := set.Peers(); peers != nil {
		peers.Handle(name, s.serve)
	}
	return s
}

// reply is an answer as it travels.
type reply[A any] struct {
	Answer *A     `json:"answer,omitempty"`
	Error  *carry `json:"error,omitempty"`
}

// serve answers another process.
func (s *Service[Q, A]) serve(ctx context.Context, shard int, request []byte) ([]byte, error) {
	var question Q
	if err := json.Unmarshal(request, &question); err != nil {
		return nil, err
	}
	a, err := s.answer(ctx, shard, question)
	r := reply[A]{Answer: &a}
	if err != nil {
		r = reply[A]{Error: pack(err)}
	}
	return json.Marshal(&r)
}

// Try asks the owner of a shard once. Its error is a replay.ErrClosed if there is none now. It is for callers holding
// something the end of a shard waits for: they must not wait for its next owner.
func (s *Service[Q, A]) Try(ctx context.Context, shard int, question Q) (a A, err error) {
	peers := s.set.Peers()
	if peers == nil || s.set.Owns(shard) {
		return s.answer(ctx, shard, question)
	}
	request, err := json.Marshal(&question)
	if err != nil {
		return a, err
	}
	return s.call(ctx, peers, shard, request)
}

// Of asks the owner of a shard, and waits for one.
func (s *Service[Q, A]) Of(ctx context.Context, shard int, question Q) (a A, err error) {
	limit := time.Now().Add(Patience)
	for tries := (Tries{}); ; {
		here := s.set.Owns(shard)
		a, err = s.Try(ctx, shard, question)
		if err == nil || s.set.Peers() == nil || !errors.Is(err, replay.ErrClosed) {
			return a, err
		}
		left := time.Until(limit)
		if s.Once && !here || left <= 0 {
			return a, unanswered(err)
		}
		if err := tries.Wait(ctx, left); err != nil {
			return a, err
		}
	}
}

// unanswered returns the error of a question not answered in time by any owner.
func unanswered(err error) error {
	return task.Errorf(task.StoreUnavailable, "no gateway works on this part of the store now; try again later").
		WithData("reason", "STORE_UNAVAILABLE").WithCause(err)
}

func (s *Service[Q, A]) call(ctx context.Context, peers shard.Peers, shard int, request []byte) (a A, err error) {
	data, err := peers.Call(ctx, shard, s.name, request)
	switch {
	case err == nil:
		return unpackReply[A](data)
	case errors.Is(err, replay.ErrClosed), ctx.Err() != nil:
		return a, err
	}
	return a, unanswered(err) // the owner has too much to do
}

func unpackReply[A any](data []byte) (a A, err error) {
	var r reply[A]
	switch err := json.Unmarshal(data, &r); {
	case err != nil:
		return a, err
	case r.Error != nil:
		return a, r.Error.unpack()
	case r.Answer != nil:
		a = *r.Answer
	}
	return a, nil
}

// All asks each living process, and yields their answers with their names; this one's has no name if it is alone.
func (s *Service[Q, A]) All(ctx context.Context, question Q) iter.Seq2[Answer[A], error] {
	return func(yield func(Answer[A], error) bool) {
		peers := s.set.Peers()
		if peers == nil {
			a, err := s.answer(ctx, shard.AnyShard, question)
			yield(Answer[A]{Value: a}, err)
			return
		}
		request, err := json.Marshal(&question)
		if err != nil {
			yield(Answer[A]{}, err)
			return
		}
		for one, err := range peers.Each(ctx, s.name, request) {
			a := Answer[A]{Node: one.Node}
			if err == nil {
				a.Value, err = unpackReply[A](one.Data)
			}
			if !yield(a, err) {
				return
			}
		}
	}
}

// Answer is the answer of one process.
type Answer[A any] struct {
	Node  string
	Value A
}

// Tell asks each living process, and waits for their answers. Their contents do not matter.
func (s *Service[Q, A]) Tell(ctx context.Context, question Q) (answered int) {
	for _, err := range s.All(ctx, question) {
		if err == nil {
			answered++
		}
	}
	return answered
}
