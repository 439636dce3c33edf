// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/front/aunfront"
	"github.com/aip-gateway/aip-gateway/front/aunfront/mailbox"
	"github.com/aip-gateway/aip-gateway/front/group"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/trust/aac"
	"github.com/aip-gateway/aip-gateway/trust/kept"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// Patience is the time for all gateways to answer a question.
const Patience = 5 * time.Second

// Node has the engines of an open store: the life-cycle and the webhooks of tasks, the groups of Partners, and the
// certificates, quotas and tokens of callers. Configurations share it. The zero value is ready for Open.
type Node struct {
	Process *Process
	Store   Store       // of the first configuration
	Storage Storage     // after its opening
	Shared  SharedStore // the same, if other processes use it, too; otherwise nil
	Shards  *shard.Set
	Beside  Beside // of the host; nil for nothing

	Tasks   *gateway.Tasks
	Groups  *group.Engine
	Book    *policy.Book
	Used    *aac.Used
	Leaders *kept.Register
	Pushes  *Pushes

	Assignees aunfront.Assignees // of AUN, at all gateways

	log     func(name string) *slog.Logger
	working atomic.Pointer[gateway.Tasks] // Tasks, for Busy, which may be asked before

	late    sync.Mutex       // held while the two below are opened, as long as a shard takes to open or close
	indexed *aunfront.Index  // of AUN; opened when it is first needed
	mailbox *mailbox.Mailbox // likewise

	unshare func() // ends that connections of AUN are those of all gateways

	users  int     // under the mutex opening of the process's nodes
	tracer *tracer // nil outside a process's nodes

	mu             sync.Mutex
	configurations []*Configuration // in force or about to stop, oldest first
}

// Config is the environment of a Node.
type Config struct {
	Process *Process
	Shards  *shard.Set
	Owners  gateway.Owners                 // has other processes execute calls; nil if the store is not shared
	Tracer  trace.TracerProvider           // nil for none
	Log     func(name string) *slog.Logger // the log of a part of the process
}

// Open opens the engines of the shards. After an error, the shards are closed.
func (n *Node) Open(c Config) (err error) {
	n.Process, n.Shards, n.log = c.Process, c.Shards, c.Log
	if n.Tasks, err = gateway.OpenTasks(n.Shards, c.Tracer, c.Log("aip.notify")); err != nil {
		return err
	}
	n.working.Store(n.Tasks)
	if c.Owners != nil {
		n.Tasks.HandOver(c.Owners)
	}
	if n.Leaders, err = kept.Open(n.Shards, time.Now, c.Log("aip")); err != nil {
		return errors.Join(err, n.Tasks.Close())
	}
	if n.Groups, err = group.Open(n.Shards, c.Tracer, c.Log("aip.group")); err != nil {
		return errors.Join(err, n.Tasks.Close())
	}
	n.Tasks.Process().AddAcceptor(n.Groups)
	n.Book = policy.OpenBook(n.Shards, time.Now, c.Log("aip"))
	n.Used = aac.OpenUsed(n.Shards, c.Log("aip"))
	n.Assignees = aunfront.ShareAssignees(n.Shards, &n.Process.Assignees)
	n.unshare = n.Process.Clients.Share(n.Shards, c.Log("aip.aun"))
	n.Pushes = OpenPushes(n.Shards, &n.Process.Callbacks)
	return nil
}

// Exiting implements SharedHost.
func (n *Node) Exiting() context.Context { return n.Process.Exiting }

// Close stops the work on all tasks, for the next process to resume, and closes the shards.
func (n *Node) Close() error {
	n.unshare()
	n.Groups.Close()
	n.Book.Close()
	n.Used.Close()
	return n.Tasks.Close() // with what else is open over the shards
}

// Busy returns why another process should not take over a shard of this one now; empty if it may. It may be asked
// before Open.
func (n *Node) Busy(shard int) string {
	if tasks := n.working.Load(); tasks != nil {
		return tasks.Stays(shard)
	}
	return ""
}

// Index returns the index of AUN, which outlives configurations.
func (n *Node) Index() *aunfront.Index {
	n.late.Lock()
	defer n.late.Unlock()
	if n.indexed == nil {
		n.indexed = aunfront.OpenIndex(n.Shards, n.log("aip.aun"))
		n.Tasks.Process().AddAcceptor(n.indexed)
	}
	return n.indexed
}

// Mailbox returns the inboxes of AUN, which outlive configurations.
func (n *Node) Mailbox() (*mailbox.Mailbox, error) {
	n.late.Lock()
	defer n.late.Unlock()
	if n.mailbox == nil {
		m, err := mailbox.Open(n.Shards, &n.Process.Clients, n.Assignees, n.log("aip.aun"))
		if err != nil {
			return nil, err
		}
		n.mailbox = m
	}
	return n.mailbox, nil
}

// Gateway implements SharedHost.
func (n *Node) Gateway(partner string) *gateway.Gateway {
	if p := n.Partners().Named(partner); p != nil {
		return p.Gateway
	}
	return nil
}

// PartnerNames implements SharedHost.
func (n *Node) PartnerNames() (names []string) {
	for p := range n.Partners().Each() {
		names = append(names, p.Name)
	}
	return names
}

// Owned returns the shards that this process owns now.
func Owned(shards *shard.Set) (list []int) {
	for i := range shards.Count() {
		if shards.Owns(i) {
			list = append(list, i)
		}
	}
	return list
}

// HasShard reports whether there is a shard of a number, which another process may have sent.
func HasShard(shards *shard.Set, i int) bool { return i >= 0 && i < shards.Count() }
