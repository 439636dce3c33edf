// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"

	"github.com/aip-gateway/aip-gateway/replay"
)

// Owner is the record of the owner of a shard, as in its stream. Epoch grows with each record.
type Owner struct {
	Node        string // empty for none
	Incarnation string
	Epoch       uint64
}

// Streams are the streams of the shards. The methods may be called by any number of goroutines at once.
type Streams interface {
	// Count returns the number of shards.
	Count() int
	// Logs returns the logs of a shard to read them.
	Logs(shard int) replay.Logs
	// Owner returns the owner's record of a shard, as the leader of its stream has it; the zero one if no
	// node has ever owned it.
	Owner(ctx context.Context, shard int) (Owner, error)
	// Claim writes the next owner's record, if after is the present one, and opens the store. From then on the appends
	// of the owner before are refused. The error is ErrClaimed if after is not the present record.
	Claim(ctx context.Context, shard int, after Owner, node, incarnation string) (Store, error)
	// Release writes an owner's record without a node, if after is the present one; otherwise the error is ErrClaimed.
	Release(ctx context.Context, shard int, after Owner) error
	// Speak has the stores write what nodes with this protocol can read. It does not block.
	Speak(protocol int)
	// StandBy has what a claim of some shards needs kept ready, and of no others. The store of a shard takes what is ready
	// over.
	StandBy(shards []int)
}

// Store is the store of a shard for the node owning it.
type Store interface {
	replay.Store
	// Fenced is closed when an append was refused because another node has claimed the shard.
	Fenced() <-chan struct{}
	// Confirm returns nil if an append was possible after the call has begun. It asks the stream for a write, so no
	// deposed leader can answer; the error is as for a fenced append if another node has claimed the shard.
	Confirm(ctx context.Context) error
	// Release writes an owner's record without a node. It is called when nothing appends any more. The error is as for a
	// fenced append if another node has claimed the shard.
	Release(ctx context.Context) error
}

// ErrClaimed is the error of a claim after another record than the present one.
var ErrClaimed = errors.New("another node has claimed the shard")

// Registry has a record of each node. It is replicated, and a write returns when a quorum has it.
type Registry interface {
	// Write writes the record of a name, and returns its revision. The error is ErrConflict if the revision of the present
	// record is not expect; expect is 0 for no record.
	Write(ctx context.Context, name string, record []byte, expect uint64) (revision uint64, err error)
	// All returns all records, as the leader of the registry has them.
	All(ctx context.Context) ([]Record, error)
	// Watch calls f with each written record, until stop is called. Some may be missed. f does not block.
	Watch(f func(Record)) (stop func(), err error)
}

// Record is a record in the registry.
type Record struct {
	Name     string
	Data     []byte
	Revision uint64 // greater than the revisions of all records before; of all names
	// Registry is another one when the registry was lost and made again: then revisions begin anew. Only All sets it.
	Registry string
}

// ErrConflict is the error of a write to the registry expecting another revision.
var ErrConflict = errors.New("another process has written the record of this name")

// Network carries messages between nodes. A message arrives once or never, and those from one address to another arrive
// in order.
type Network interface {
	// Listen receives the messages to an address, until stop is called. f is called by one goroutine, and does not block.
	Listen(address string, f func(Message)) (stop func(), err error)
	// Send sends a message. It keeps no reference to the data.
	Send(Message) error
	// MaxData returns the greatest number of bytes of data of a message now.
	MaxData() int
}

// Message is a message from one address to another.
type Message struct {
	From, To string
	ID       uint64 // of its call
	Data     []byte
	// Unheard is set if no process listens to the address the message From was sent to with this ID.
	Unheard bool
}

// allNodes is the address of all nodes.
const allNodes = "all"
