// SPDX-License-Identifier: Apache-2.0

package kept

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/replay/shard/ask"
)

// Register has the certificates of Leaders. It may be used by any number of goroutines at once.
type Register struct {
	set    *shard.Set
	homes  *shard.Each[home]
	calls  *ask.Service[call, struct{}]
	lists  *ask.Service[struct{}, []lostLeaders]
	log    *slog.Logger
	now    func() time.Time
	gained atomic.Uint64 // shards and Leaders

	mu       sync.RWMutex
	learned  map[int][]string          // the Leaders that have lost their standing, by the shards of other processes
	reported map[reportedKey]time.Time // when calls were reported to the owners of other shards
}

// call is what a process tells the owner of a Leader's shard.
type call struct {
	Leader string
	Chain  [][]byte
	Pool   string
	Lasts  bool
}

// lostLeaders are the Leaders of a shard that have lost their standing.
type lostLeaders struct {
	Shard   int
	Leaders []string
}

// Open reads what the store has in the shards that this process owns now and later. now is the clock, such as time.Now.
func Open(set *shard.Set, now func() time.Time, log *slog.Logger) (r *Register, err error) {
	r = &Register{set: set, log: log, now: now, learned: make(map[int][]string), reported: make(map[reportedKey]time.Time)}
	if r.homes, err = shard.Open(set, r.openHome, func(*home) {}); err != nil {
		return nil, err
	}
	r.calls = ask.New(set, "standing.called", r.tell)
	r.lists = ask.New(set, "standing.lost", func(context.Context, int, struct{}) (all []lostLeaders, _ error) {
		for h := range r.homes.All() {
			all = append(all, lostLeaders{h.shard, h.lost()})
		}
		return all, nil
	})
	return r, nil
}

// Close ends the use of the shards.
func (r *Register) Close() { r.homes.Close() }

// shardOf returns the shard that has the certificates of a Leader, at whichever Partner.
func (r *Register) shardOf(leader string) int { return replay.ShardOf(r.set.Count(), leader) }

// tell has the owner of a Leader's shard know of a call.
func (r *Register) tell(ctx context.Context, shard int, c call) (none struct{}, err error) {
	h := r.homes.Of(shard)
	if h == nil {
		return none, replay.ErrFenced
	}
	chain, err := parse(c.Chain)
	if err != nil {
		return none, err
	}
	return none, h.called(ctx, c.Leader, Proof{chain, c.Pool}, c.Lasts)
}

const (
	// reportedFor is how long calls by the same certificate are not reported again to the owner of a Leader's shard.
	reportedFor = 10 * time.Second
	// maxReported is the most reported calls remembered.
	maxReported = 1 << 16
)

type reportedKey struct {
	leader string
	cert   [sha256.Size]byte
	lasts  bool
}

// wasReported says whether a call was reported to the owner of a Leader's shard lately.
func (r *Register) wasReported(k reportedKey) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	at, known := r.reported[k]
	return known && r.now().Sub(at) < reportedFor
}

// Called says that a Leader calls by a certificate that counts. It is stored when Called returns, if lasts says that
// the call asks for what goes on without a connection, or if one has before.
func (r *Register) Called(ctx context.Context, name string, p Proof, lasts bool) error {
	s := r.shardOf(name)
	key := reportedKey{leader: name, lasts: lasts}
	h := r.homes.Of(s)
	switch {
	case h != nil && !h.news(name, p, lasts):
		return nil
	case h == nil:
		if key.cert = sha256.Sum256(p.Chain[0].Raw); r.wasReported(key) {
			return nil
		}
	}
	c := call{Leader: name, Pool: p.Pool, Lasts: lasts}
	for _, cert := range p.Chain {
		c.Chain = append(c.Chain, cert.Raw)
	}
	if _, err := r.calls.Of(ctx, s, c); err != nil || h != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.reported) >= maxReported {
		clear(r.reported)
	}
	r.reported[key] = r.now()
	return nil
}

// Lost reports whether a Leader has lost its standing.
func (r *Register) Lost(name string) bool {
	s := r.shardOf(name)
	if h := r.homes.Of(s); h != nil {
		return h.isLost(name)
	}
	return r.learnedOf(s, name)
}

// learnedOf reports whether a Leader of a shard has lost its standing, as its owner has said.
func (r *Register) learnedOf(shard int, name string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Contains(r.learned[shard], name)
}

// Gained rises with each shard that this process gains, and with each Leader that has its standing again: they are to
// be judged.
func (r *Register) Gained() uint64 { return r.gained.Load() }

// Judge judges the certificates again that are kept in the shards of this process. counts reports whether a certificate
// counts; what it is given has been parsed anew. did says whether the certificate counted before: that is stored, so
// that it holds after a restart, too, until more is known.
func (r *Register) Judge(ctx context.Context, counts func(p Proof, did bool) bool) {
	for h := range r.homes.All() {
		h.judge(ctx, counts)
	}
}

// Learn asks the other processes which Leaders have lost their standing. What one has said that does not answer is
// kept.
func (r *Register) Learn(ctx context.Context) {
	if r.set.Peers() == nil {
		return
	}
	for answer, err := range r.lists.All(ctx, struct{}{}) {
		if err != nil {
			r.log.Debug("a process has not said which Leaders have lost their standing", "node", answer.Node, "error", err)
			continue
		}
		r.mu.Lock()
		for _, of := range answer.Value {
			r.learned[of.Shard] = of.Leaders
		}
		r.mu.Unlock()
	}
}

// AllLost returns the Leaders that have lost their standing, of all processes.
func (r *Register) AllLost() (all []string) {
	for s := range r.set.Count() {
		if h := r.homes.Of(s); h != nil {
			all = append(all, h.lost()...)
			continue
		}
		r.mu.RLock()
		all = append(all, r.learned[s]...)
		r.mu.RUnlock()
	}
	slices.Sort(all)
	return all
}
