// SPDX-License-Identifier: Apache-2.0

package replaytest

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
)

// service answers requests of other Nodes.
type service func(ctx context.Context, shard int, request []byte) ([]byte, error)

// Name implements shard.Peers.
func (n *Node) Name() string { return n.name }

// Handle implements shard.Peers.
func (n *Node) Handle(name string, answer func(ctx context.Context, shard int, request []byte) ([]byte, error)) {
	n.of.mu.Lock()
	defer n.of.mu.Unlock()
	n.services[name] = answer
}

// Call implements shard.Peers.
func (n *Node) Call(ctx context.Context, shard int, service string, request []byte) ([]byte, error) {
	s := n.of
	s.mu.Lock()
	owner := s.shards[shard].owner
	if owner == nil || owner.node.dead {
		s.mu.Unlock()
		return nil, replay.ErrFenced
	}
	s.mu.Unlock()
	return owner.node.serve(ctx, shard, service, request)
}

// serve answers a request of another Node.
func (n *Node) serve(ctx context.Context, shard int, service string, request []byte) ([]byte, error) {
	n.of.mu.Lock()
	answer := n.services[service]
	n.of.mu.Unlock()
	if answer == nil {
		return nil, fmt.Errorf("%s does not have the service %s yet: %w", n.name, service, replay.ErrFenced)
	}
	return answer(ctx, shard, slices.Clone(request))
}

// Each implements shard.Peers.
func (n *Node) Each(ctx context.Context, service string, request []byte) iter.Seq2[shard.Answer, error] {
	return func(yield func(shard.Answer, error) bool) {
		s := n.of
		s.mu.Lock()
		nodes := slices.DeleteFunc(slices.Clone(s.nodes), func(n *Node) bool { return n.dead })
		s.mu.Unlock()
		for _, node := range nodes {
			data, err := node.serve(ctx, shard.AnyShard, service, request)
			if !yield(shard.Answer{Node: node.name, Data: data}, err) {
				return
			}
		}
	}
}

// Kill has the Node answer the others no more. Its shards stay as they are until assigned to another one.
func (n *Node) Kill() {
	n.of.mu.Lock()
	defer n.of.mu.Unlock()
	n.dead = true
}

// Interface guards.
var (
	_ replay.Shards = (*Node)(nil)
	_ shard.Peers   = (*Node)(nil)
)
