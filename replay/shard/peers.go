// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"iter"
)

// Peers are the processes sharing the shards, as far as they ask each other. A replay.Shards implements it, too, if it
// can have others asked. Its methods may be called by any number of goroutines at once.
type Peers interface {
	// Name returns the name of this process among them.
	Name() string

	// Call has the owner of a shard answer a request to a service. The error is a replay.ErrClosed if the shard has no
	// owner now, or the owner has not answered: it may have carried out the request all the same. Errors of the service
	// come as part of the answer only.
	Call(ctx context.Context, shard int, service string, request []byte) ([]byte, error)

	// Each has all living processes answer a request to a service, this one included, and yields their answers in any
	// order. The error of one without an answer comes with its name.
	Each(ctx context.Context, service string, request []byte) iter.Seq2[Answer, error]

	// Handle has a service answer requests. shard is the one of Call, and AnyShard for Each. The last function of a
	// service counts.
	Handle(service string, answer func(ctx context.Context, shard int, request []byte) ([]byte, error))
}

// AnyShard is the shard of a request to all processes.
const AnyShard = -1

// Answer is the answer of one process.
type Answer struct {
	Node string // its name
	Data []byte
}

// Peers returns the processes sharing the shards; nil if they are not shared, or cannot be asked.
func (s *Set) Peers() Peers { return s.peers }

// Owns reports whether this process owns a shard: it opens or has opened what works on it.
func (s *Set) Owns(shard int) bool { return s.slots[shard].owned.Load() }
