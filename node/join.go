// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Member is a process among those that share a store. Its methods may be called by any number of goroutines at once.
type Member interface {
	replay.Shards
	shard.Peers
	gateway.Owners

	// Ready returns why the process cannot act as a member now; nil if it can.
	Ready() error

	// Drain has a process, by its name, give its shards to the others, and take none, or ends that.
	Drain(ctx context.Context, node string, drain bool) error
	// Move has a process own a shard, from now on and while it lives.
	Move(ctx context.Context, shard int, to string) error
	// HandOver drains this process, and returns when it owns no shard any more, or the context is done.
	HandOver(ctx context.Context)

	// Close ends the membership. The shards were closed before.
	Close() error
}

const (
	// firstTry is the time of a configuration's start for the servers, so as to find mistakes.
	firstTry = 10 * time.Second
	// retryJoin is the time between two tries.
	retryJoin = time.Second
)

// errPassing marks an error of a joining process, if it may pass by itself.
var errPassing = errors.New("it is tried again")

// passesByItself reports whether an error of a joining process may pass by itself.
func passesByItself(err error) bool {
	return errors.Is(err, errPassing) || errors.Is(err, replay.ErrUnavailable)
}

// MayPass marks an error as one to pass by itself, with the same text.
func MayPass(err error) error { return passingError{err} }

type passingError struct{ error }

func (e passingError) Unwrap() []error { return []error{e.error, errPassing} }

// Joining is the part of this process in a shared store. Until it is a member, everything is unavailable,
// and it tries again. It implements SharedStore.
type Joining struct {
	count int
	name  string
	log   *slog.Logger
	join  func(context.Context) (Member, error)

	exiting context.Context // done when the process is about to end

	ctx  context.Context // of the trying goroutine
	stop context.CancelFunc
	work sync.WaitGroup

	joined chan struct{} // closed when member is set

	mu       sync.Mutex
	member   Member // nil until then
	problem  error  // the reason for none
	services map[string]func(ctx context.Context, shard int, request []byte) ([]byte, error)
	settings replay.Settings
	stores   map[*openShard]struct{} // of this process
}

// JoinConfig is the environment of a Joining.
type JoinConfig struct {
	Shards   int             // their number
	Name     string          // of this process among the others
	Settings replay.Settings // of the whole store
	Log      *slog.Logger
	Exiting  context.Context // done when the process is about to end

	// Join makes this process a member. It is called again after an error of MayPass.
	Join func(context.Context) (Member, error)
}

// Join begins to join. Its error does not pass by itself.
func Join(c JoinConfig) (*Joining, error) {
	j := &Joining{count: c.Shards, name: c.Name, log: c.Log, join: c.Join, settings: c.Settings, exiting: c.Exiting,
		joined:   make(chan struct{}),
		services: make(map[string]func(context.Context, int, []byte) ([]byte, error)),
		stores:   make(map[*openShard]struct{})}
	j.ctx, j.stop = context.WithCancel(context.Background())
	ctx, cancel := context.WithTimeout(j.ctx, firstTry)
	defer cancel()
	err := j.try(ctx)
	switch {
	case err == nil:
	case passesByItself(err):
		// What to do: see `error`.
		j.log.Warn("the store cannot be used yet; the gateway is unready, and keeps trying", "error", err)
		j.work.Go(func() { j.keepTrying(err) })
	default:
		j.stop()
		return nil, err
	}
	return j, nil
}

// keepTrying tries until this process is a member.
func (j *Joining) keepTrying(last error) {
	for {
		select {
		case <-time.After(retryJoin):
		case <-j.ctx.Done():
			return
		}
		err := j.try(j.ctx)
		switch {
		case err == nil:
			j.log.Info("the store can be used now")
			return
		case j.ctx.Err() != nil:
			return
		case err.Error() != last.Error():
			j.log.Warn("the store cannot be used yet; the gateway is unready, and keeps trying", "error", err)
			last = err
		}
	}
}

func (j *Joining) try(ctx context.Context) error {
	m, err := j.join(ctx)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.problem = err
	if err != nil {
		return err
	}
	for name, answer := range j.services {
		m.Handle(name, answer)
	}
	j.member = m
	close(j.joined)
	return nil
}

// Member returns the membership of this process. Its error, before there is one, is for an operator.
func (j *Joining) Member() (Member, error) {
	if m := j.now(); m != nil {
		return m, nil
	}
	return nil, partner.StoreError(j.errNotJoined(), "")
}

// now returns the member; nil while there is none.
func (j *Joining) now() Member {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.member
}

// errNotJoined returns the reason for no membership.
func (j *Joining) errNotJoined() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if errors.Is(j.problem, replay.ErrUnavailable) {
		return j.problem
	}
	return fmt.Errorf("%w: %w", replay.ErrUnavailable, j.problem)
}

// Count implements replay.Shards.
func (j *Joining) Count() int { return j.count }

// Logs implements replay.Shards.
func (j *Joining) Logs(shard int) replay.Logs {
	find := func() replay.Logs {
		if m := j.now(); m != nil {
			return m.Logs(shard)
		}
		return nil
	}
	if logs := find(); logs != nil {
		return logs
	}
	return lateLogs{find}
}

// Open implements replay.Shards.
func (j *Joining) Open(ctx context.Context, shard int) (replay.Store, <-chan struct{}, error) {
	select {
	case <-j.joined:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	store, lost, err := j.member.Open(ctx, shard)
	if err != nil {
		return nil, nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	store.Configure(j.share())
	s := &openShard{Store: store, of: j}
	j.stores[s] = struct{}{}
	return s, lost, nil
}

// openShard is the store of a shard of this process.
type openShard struct {
	replay.Store
	of *Joining
}

// Held is the optional method of a store: see replay.HeldBy.
func (s *openShard) Held() error {
	if held, ok := s.Store.(interface{ Held() error }); ok {
		return held.Held()
	}
	return nil
}

// Close implements replay.Store.
func (s *openShard) Close() error {
	s.of.mu.Lock()
	delete(s.of.stores, s)
	s.of.mu.Unlock()
	return s.Store.Close()
}

// share returns the settings of one shard. j.mu is held.
func (j *Joining) share() replay.Settings {
	s := j.settings
	s.MaxSize = (s.MaxSize + int64(j.count) - 1) / int64(j.count)
	return s
}

// Configure implements Storage.
func (j *Joining) Configure(s replay.Settings) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.settings = s
	for store := range j.stores {
		store.Store.Configure(j.share())
	}
}

// Writable implements Storage: whether this process can act, and write to its shards.
func (j *Joining) Writable() error {
	m := j.now()
	if m == nil {
		return j.errNotJoined()
	}
	if err := m.Ready(); err != nil {
		return err
	}
	j.mu.Lock()
	stores := slices.Collect(maps.Keys(j.stores))
	j.mu.Unlock()
	for _, s := range stores {
		if err := s.Store.Writable(); err != nil {
			return err
		}
	}
	return nil
}

// Owners implements SharedStore.
func (j *Joining) Owners() gateway.Owners { return j }

// answerWithin is the time within which calls that wait at another process are answered when this one is about to end,
// at random times, so that callers do not all come back at once.
const answerWithin = 2 * time.Second

// errExiting ends the waiting of calls when the process is about to end.
var errExiting = errors.New("the gateway is stopping")

// Execute implements gateway.Owners. When this process is about to end, a call that waits for its task at another one
// is answered with the task as it is.
func (j *Joining) Execute(
	ctx context.Context, shard int, name string, c *gateway.Call, reserve replay.Reserve,
) (gateway.Result, error) {
	m := j.now()
	if m == nil {
		return gateway.Result{}, gateway.NotBegun(partner.Moved())
	}
	if c.Op != translate.Command || c.Stream || c.Message.Command != task.Start && c.Message.Command != task.Continue {
		return m.Execute(ctx, shard, name, c, reserve)
	}
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(j.exiting, func() {
		time.AfterFunc(rand.N(answerWithin), func() { cancel(errExiting) })
	})()
	r, err := m.Execute(waiting, shard, name, c, reserve)
	if err == nil || ctx.Err() != nil || context.Cause(waiting) != errExiting {
		return r, err
	}
	again := *c // the same message, carried out once
	again.Terms.Response, again.Blocking = task.NoWait, false
	if c.Message.ID == "" {
		again.Message = task.Message{Command: task.Get, TaskID: c.Message.TaskID, SenderID: c.Message.SenderID}
	}
	return m.Execute(ctx, shard, name, &again, reserve)
}

// Name implements shard.Peers.
func (j *Joining) Name() string { return j.name }

// Call implements shard.Peers.
func (j *Joining) Call(ctx context.Context, shard int, service string, request []byte) ([]byte, error) {
	if m := j.now(); m != nil {
		return m.Call(ctx, shard, service, request)
	}
	return nil, partner.Moved()
}

// Each implements shard.Peers.
func (j *Joining) Each(ctx context.Context, service string, request []byte) iter.Seq2[shard.Answer, error] {
	if m := j.now(); m != nil {
		return m.Each(ctx, service, request)
	}
	return func(yield func(shard.Answer, error) bool) {
		yield(shard.Answer{Node: j.name}, partner.StoreError(j.errNotJoined(), ""))
	}
}

// Handle implements shard.Peers.
func (j *Joining) Handle(service string, answer func(ctx context.Context, shard int, request []byte) ([]byte, error)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.services[service] = answer
	if j.member != nil {
		j.member.Handle(service, answer)
	}
}

// HandOver implements SharedStore.
func (j *Joining) HandOver(ctx context.Context) {
	if m := j.now(); m != nil {
		m.HandOver(ctx)
	}
}

// Move implements SharedStore.
func (j *Joining) Move(ctx context.Context, shard int, to string) error {
	m, err := j.Member()
	if err != nil {
		return err
	}
	return m.Move(ctx, shard, to)
}

// Drain implements SharedStore.
func (j *Joining) Drain(ctx context.Context, node string, drain bool) (string, error) {
	if node == "" {
		node = j.name
	}
	m, err := j.Member()
	if err != nil {
		return node, err
	}
	return node, m.Drain(ctx, node, drain)
}

// Close implements SharedStore.
func (j *Joining) Close() error {
	j.stop()
	j.work.Wait()
	if m := j.now(); m != nil {
		return m.Close()
	}
	return nil
}

// Interface guards.
var (
	_ SharedStore = (*Joining)(nil)
	_ shard.Peers = (*Joining)(nil)
)
