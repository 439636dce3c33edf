// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/replay/shard/ask"
)

// nodes are the connections at other processes. A client may be connected to any of them, so everything for an AID is
// sent to all, and all are asked for its connections.
type nodes struct {
	name    string
	log     *slog.Logger
	notices *ask.Service[noticesTo, struct{}]
	asks    *ask.Service[presence, bool]
	logins  *ask.Service[loginOf, *aun.Begun]

	certificates *ask.Service[certificateOf, []byte]
	looks        chan struct{} // one for each question about a certificate under way

	queue chan noticeTo
	stop  context.CancelFunc
	done  sync.WaitGroup
}

// noticesTo are notifications to the clients of other processes than the sender.
type noticesTo struct {
	From    string
	Notices []noticeTo
}

// noticeTo is a notification to the clients of an AID: a whole Frame, or the Params of a Method.
type noticeTo struct {
	AID    string
	Frame  []byte `json:",omitempty"`
	Method string `json:",omitempty"`
	Params []byte `json:",omitempty"`
	// Task has only followers of a task notified, if they want the Event of it.
	Task  string `json:",omitempty"`
	Event string `json:",omitempty"`
	// One has one connection notified, at the one process named At.
	One bool   `json:",omitempty"`
	At  string `json:",omitempty"`
}

// presence asks a process whether an AID is connected, or has it give up the connection of a device with a newer one
// elsewhere.
type presence struct {
	From, AID    string
	Device, Slot string
	Extra        json.RawMessage `json:",omitempty"` // the self-description of the newer one's client
	Began        time.Time       // of the newer one; zero for a question
}

// loginOf asks a process for a login with its first step there.
type loginOf struct{ From, Nonce string }

const (
	// queuedNotices is the number of notifications waiting for other processes, at most. Later ones are dropped: their
	// clients read everything missed when they connect again.
	queuedNotices = 4096
	// batchedNotices is the number of notifications sent at once, and batchedBytes their size, at most.
	batchedNotices = 256
	batchedBytes   = 4 << 20
	// nodePatience is the time for which other processes are waited for.
	nodePatience = 3 * time.Second
)

// Share has the connections of several processes act as those of one, until stop is called. Limits are those of each.
func (c *Connections) Share(set *shard.Set, log *slog.Logger) (stop func()) {
	peers := set.Peers()
	if peers == nil {
		return func() {}
	}
	n := &nodes{name: peers.Name(), log: log, queue: make(chan noticeTo, queuedNotices),
		looks: make(chan struct{}, maxLooks)}
	n.notices = ask.New(set, "aun.notices", func(_ context.Context, _ int, q noticesTo) (none struct{}, err error) {
		if q.From != n.name {
			for i := range q.Notices {
				c.deliverHere(n.name, &q.Notices[i])
			}
		}
		return none, nil
	})
	n.asks = ask.New(set, "aun.presence", func(_ context.Context, _ int, q presence) (bool, error) {
		switch {
		case q.From == n.name:
			return false, nil
		case q.Began.IsZero():
			return len(c.online(q.AID)) > 0, nil
		}
		c.giveUp(&q)
		return false, nil
	})
	n.logins = ask.New(set, "aun.login", func(_ context.Context, _ int, q loginOf) (*aun.Begun, error) {
		if a := c.authority.Load(); a != nil && q.From != n.name {
			return a.Take(q.Nonce), nil
		}
		return nil, nil
	})
	n.certificates = ask.New(set, "aun.certificate", func(_ context.Context, _ int, q certificateOf) ([]byte, error) {
		if q.From == n.name {
			return nil, nil
		}
		return c.present(q), nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	n.stop = cancel
	n.done.Go(func() { n.send(ctx) })
	c.shareBy(n, true)
	return func() {
		c.shareBy(n, false)
		n.stop()
		n.done.Wait()
	}
}

// shareBy has the connections be those of all processes of a store, or ends that: then the stores before count again.
func (c *Connections) shareBy(n *nodes, begin bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if begin {
		c.shared = append(c.shared, n)
	} else {
		c.shared = slices.DeleteFunc(c.shared, func(o *nodes) bool { return o == n })
	}
	var last *nodes
	if i := len(c.shared); i > 0 {
		last = c.shared[i-1]
	}
	c.nodes.Store(last)
}

// loginElsewhere returns the login of a nonce, with its first step at another process; nil for none.
func (c *Connections) loginElsewhere(nonce string) *aun.Begun {
	n := c.nodes.Load()
	if n == nil {
		return nil
	}
	ctx, done := context.WithTimeout(context.Background(), nodePatience)
	defer done()
	for answer, err := range n.logins.All(ctx, loginOf{n.name, nonce}) {
		if err == nil && answer.Value != nil {
			return answer.Value
		}
	}
	return nil
}

// elsewhere has the clients at other processes notified. It does not wait.
func (c *Connections) elsewhere(to noticeTo) {
	n := c.nodes.Load()
	if n == nil {
		return
	}
	select {
	case n.queue <- to:
	default:
		n.log.Warn("a notification is not sent to clients at other gateways, because too many wait", "aid", to.AID)
	}
}

// send sends the queue, in its order, until ctx ends.
func (n *nodes) send(ctx context.Context) {
	for {
		var q noticesTo
		select {
		case first := <-n.queue:
			q = noticesTo{From: n.name, Notices: []noticeTo{first}}
		case <-ctx.Done():
			return
		}
		size := 0
		for more := true; more && len(q.Notices) < batchedNotices && size < batchedBytes; {
			last := &q.Notices[len(q.Notices)-1]
			if size += len(last.Frame) + len(last.Params); last.One {
				last.At = n.find(ctx, last.AID)
			}
			select {
			case next := <-n.queue:
				q.Notices = append(q.Notices, next)
			default:
				more = false
			}
		}
		sending, done := context.WithTimeout(ctx, nodePatience)
		n.notices.Tell(sending, q)
		done()
	}
}

// find returns the process with a connection of an AID: one of them, or the empty string.
func (n *nodes) find(ctx context.Context, aid string) (found string) {
	ctx, done := context.WithTimeout(ctx, nodePatience)
	defer done()
	for answer, err := range n.asks.All(ctx, presence{From: n.name, AID: aid}) {
		if err == nil && answer.Value && (found == "" || answer.Node < found) {
			found = answer.Node
		}
	}
	return found
}

// deliverHere notifies the clients of this process.
func (c *Connections) deliverHere(name string, to *noticeTo) {
	list := c.online(to.AID)
	if to.Task != "" {
		list = slices.DeleteFunc(slices.Clone(c.Of(to.AID)), func(s *Session) bool { return !s.follows(to.Task, to.Event) })
	}
	if to.One {
		if to.At != name || len(list) == 0 {
			return
		}
		list = list[len(list)-1:]
	}
	frame := to.Frame
	if frame == nil {
		frame = eventFrame(to.Method, to.Params)
	}
	send(list, to.Method, frame, nil)
}

// giveUp closes the older connection of a device with a newer one at another process.
func (c *Connections) giveUp(q *presence) {
	for _, s := range c.Of(q.AID) {
		if !s.isShort() && s.Device == q.Device && s.slotKey() == slotPrefix(q.Slot) && s.began.Before(q.Began) {
			c.drop(s)
			s.replace(&Session{Device: q.Device, Slot: q.Slot, extra: q.Extra})
		}
	}
}

// replaceElsewhere has the older connection of the client's device given up at other processes. When it returns, its
// positions are stored, unless its process does not answer.
func (s *Session) replaceElsewhere() {
	n := s.front.config.Connections.nodes.Load()
	if n == nil || s.Device == "" || s.isShort() {
		return
	}
	ctx, done := context.WithTimeout(s.ctx, nodePatience)
	defer done()
	n.asks.Tell(ctx, presence{From: n.name, AID: s.AID, Device: s.Device, Slot: s.Slot,
		Extra: s.extra, Began: s.began})
}
