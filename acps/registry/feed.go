// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// Limits and times of a Feed.
const (
	feedPath = "/acps-dsp-v2"
	pollWait = 30 * time.Second
	// pollTimeout is the time for one poll, and for one snapshot.
	pollTimeout = time.Minute
	// pollPause is the wait after an immediate answer without news.
	pollPause = 5 * time.Second
	// firstRetry is the wait before a failed poll is tried again. It doubles up to maxRetry.
	firstRetry = 10 * time.Second
	maxRetry   = 5 * time.Minute

	snapshotLimit = 1000                    // agents in one part of a snapshot
	maxParts      = 4096                    // of a snapshot
	maxAgents     = 1 << 20                 // known at once
	maxAnswerPart = snapshotLimit * maxLine // bytes of one answer
)

// Fresh is the time for which the knowledge of a Feed counts after the last answer of its registry.
const Fresh = 2 * time.Minute

// Feed follows the active agents of a registry, and their changes: by a snapshot of all agents, and then by requests
// for the changes (DSP v2.1). Such a request waits until there is one. A disabled or deleted agent is a change to
// active: false. It may be used by any number of goroutines at once.
type Feed struct {
	client *Client
	log    *slog.Logger

	// Of the goroutine that follows.
	seq   string  // of the last change; empty before the first snapshot
	quiet bool    // the last poll has brought nothing
	back  *uint64 // the newest number of a registry gone back; nil for none

	ctx    context.Context // of the goroutines
	cancel context.CancelFunc
	start  sync.Once
	work   sync.WaitGroup

	mu       sync.RWMutex // guards the fields below
	agents   map[agentKey]state
	inactive int           // of them
	answered time.Time     // the last time
	err      error         // the reason for lacking news
	changed  chan struct{} // closed at the next change
	active   map[agentKey]active
	asked    map[agentKey]string // the AICs of agents asked for by Active or Ask
	missing  map[agentKey]string // those of them active before, and missing in the last snapshot
}

// active is a context. It ends when the registry reports an agent as not active.
type active struct {
	ctx context.Context
	end context.CancelFunc
}

// agentKey stands for an AIC, in less memory.
type agentKey [16]byte

func keyOf(aic string) (k agentKey) {
	sum := sha256.Sum256([]byte(aic))
	copy(k[:], sum[:])
	return k
}

// state is the known state of an agent.
type state struct {
	digest uint64 // of its ACS
	active bool
}

// Standing is a registry's word about an agent.
type Standing struct {
	Known, Active bool
	// Revision is another number when the registry has another ACS.
	Revision uint64
	// Answered is the time of the registry's last answer; zero for never.
	Answered time.Time
}

// FeedHealth is the state of a feed.
type FeedHealth struct {
	Agents, Inactive int
	Answered         time.Time // zero for never
	Err              error     // the reason for lacking news; nil if there is any
}

// NewFeed returns the feed of a registry. Nothing is sent before Start. The caller must close it.
func NewFeed(client *Client, log *slog.Logger) *Feed {
	f := &Feed{client: client, log: log, changed: make(chan struct{}), active: make(map[agentKey]active),
		asked: make(map[agentKey]string), missing: make(map[agentKey]string)}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// Start begins to follow the registry, at the first call.
func (f *Feed) Start() { f.start.Do(func() { f.work.Go(f.follow) }) }

// Close ends the goroutines, and waits for them. Known states go on to count.
func (f *Feed) Close() {
	f.start.Do(func() {}) // it is not started any more
	f.cancel()
	f.work.Wait()
	f.client.Close()
}

// Agent returns the standing of an agent by its AIC, in its canonical form.
func (f *Feed) Agent(aic string) Standing {
	f.mu.RLock()
	defer f.mu.RUnlock()
	s, known := f.agents[keyOf(aic)]
	return Standing{Known: known, Active: s.active, Revision: s.digest, Answered: f.answered}
}

// Active returns a context. It ends when the registry reports an agent as not active, and goes on if nothing is known.
// There is one for each agent; the caller names the agent by its AIC in its canonical form.
func (f *Feed) Active(aic string) context.Context {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := keyOf(aic)
	f.asked[key] = aic
	if one, is := f.active[key]; is {
		return one.ctx
	}
	var one active
	one.ctx, one.end = context.WithCancel(context.Background())
	if s, known := f.agents[key]; known && !s.active {
		one.end()
	} else {
		f.active[key] = one
	}
	return one.ctx
}

// Ask asks the registry about an agent unknown to the Feed: the feed may lack inactive agents. After an error the
// registry cannot be asked now. An agent unknown to the registry stays unknown.
func (f *Feed) Ask(ctx context.Context, aic string) error {
	key := keyOf(aic)
	f.mu.Lock()
	f.asked[key] = aic
	_, known := f.agents[key]
	_, missing := f.missing[key]
	f.mu.Unlock()
	if known {
		return nil
	}
	_, err := f.client.ACS(ctx, aic)
	switch {
	case err == nil, Is(err, Inactive), missing && Is(err, NotFound): // then it was deleted
	case IsTransient(err):
		return err
	default:
		return nil
	}
	found := state{active: err == nil}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.agents[key]; known { // by a change meanwhile
		return nil
	}
	_, _, _ = f.merge(map[agentKey]state{key: found}, false) // for agents asked for, there is always room
	f.tell()
	return nil
}

// tell wakes the waiters for a change. f.mu is held.
func (f *Feed) tell() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// Changed returns a channel, closed when an agent becomes known, active or inactive the next time, or the registry has
// sent all agents for the first time.
func (f *Feed) Changed() <-chan struct{} {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.changed
}

// Health returns the state of the feed.
func (f *Feed) Health() FeedHealth {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return FeedHealth{len(f.agents), f.inactive, f.answered, f.err}
}

// follow follows the registry until the Feed is closed.
func (f *Feed) follow() {
	failures := 0
	for wait := time.Duration(0); f.pause(wait); {
		began := time.Now()
		news, err := f.poll()
		switch {
		case err != nil:
			failures++
			wait = min(maxRetry, firstRetry<<min(failures-1, 16))
			if e, ok := errors.AsType[*Error](err); ok {
				wait = max(e.RetryAfter, wait)
			}
			continue
		case !news && time.Since(began) < pollPause:
			wait = pollPause
		default:
			wait = 0
		}
		failures = 0
		f.askMissing()
	}
}

// askMissing asks about the agents active before a gap in the feed, and missing in the snapshot after it: they may have
// been disabled meanwhile. If the registry does not answer, it is asked again after the next poll.
func (f *Feed) askMissing() {
	f.mu.RLock()
	missing := maps.Clone(f.missing)
	f.mu.RUnlock()
	for key, aic := range missing {
		if f.Ask(f.ctx, aic) != nil {
			return
		}
		f.mu.Lock()
		delete(f.missing, key)
		f.mu.Unlock()
	}
}

// pause waits, and reports whether the Feed is not closed.
func (f *Feed) pause(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-f.ctx.Done():
	case <-timer.C:
	}
	return f.ctx.Err() == nil
}

// poll gets the news once. It returns whether there are any.
func (f *Feed) poll() (news bool, err error) {
	ctx, cancel := context.WithTimeout(f.ctx, pollTimeout)
	defer cancel()
	if f.quiet && f.seq != "" {
		f.lookBack(ctx)
	}
	defer func() { f.quiet = !news }()
	whole, get := f.seq == "", f.changes
	if whole {
		get = f.snapshot
	}
	found, seq, err := get(ctx)
	switch {
	case err != nil && f.ctx.Err() != nil:
		return false, err
	case Is(err, Gone) && !whole:
		f.seq = "" // it no longer has the changes after the last one
		return true, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	before, turned := f.err, false
	if err == nil {
		_, lost := found[unreadable]
		delete(found, unreadable)
		var full error
		if news, turned, full = f.merge(found, whole); lost || full != nil {
			f.log.Warn("some of what a registry says is not kept; agents whose ACS cannot be read are not active",
				"source", f.client.URL(), "error", full)
		}
	}
	if f.err = err; err == nil {
		turned = turned || f.answered.IsZero()
		f.seq, f.answered = seq, time.Now()
	}
	switch {
	case err == nil && (before != nil || whole):
		f.log.Info("a registry is followed", "source", f.client.URL(), "agents", len(f.agents), "inactive", f.inactive)
	case err != nil && (before == nil || before.Error() != err.Error()):
		f.log.Warn("a registry cannot be followed", "source", f.client.URL(), "error", err)
	}
	if turned {
		f.tell()
	}
	return news, err
}

// merge puts found states into force; with whole, these are all agents. An agent missing in a whole keeps being
// inactive. turned reports whether an agent has become known, active or inactive. The error means a lack of room for
// some agents; these stay unknown. f.mu is held.
func (f *Feed) merge(found map[agentKey]state, whole bool) (news, turned bool, err error) {
	next := f.agents
	if whole || next == nil {
		next = make(map[agentKey]state, len(found))
		for key, s := range f.agents {
			if !s.active {
				next[key] = s
			} else if aic, is := f.asked[key]; is {
				if _, is := found[key]; !is {
					f.missing[key] = aic
				}
			}
		}
	}
	for key, s := range found {
		if _, is := next[key]; !is && len(next) >= maxAgents && f.asked[key] == "" {
			err = fmt.Errorf("it has more than %d agents", maxAgents)
			continue
		}
		was, is := f.agents[key]
		news = news || !is || was != s
		turned = turned || !is || was.active != s.active
		if is && !was.active {
			f.inactive--
		}
		if !s.active {
			f.inactive++
			if one, is := f.active[key]; is {
				one.end()
				delete(f.active, key)
			}
		}
		next[key] = s
	}
	f.agents = next
	return news, turned, err
}

// snapshot gets all agents.
func (f *Feed) snapshot(ctx context.Context) (found map[agentKey]state, seq string, err error) {
	found = make(map[agentKey]state)
	query := url.Values{"types": {"acs"}, "limit": {strconv.Itoa(snapshotLimit)}}
	lines, parts := 0, 1
	for part := 0; part < parts; part++ {
		header, n, err := f.get(ctx, "/snapshots", query, found)
		if err != nil {
			return nil, "", err
		}
		lines += n
		if part == 0 {
			seq = header.Get("X-Snapshot-Seq")
			if _, err := strconv.ParseUint(seq, 10, 63); err != nil {
				return nil, "", errors.New("its snapshot has no number")
			}
			if parts, err = strconv.Atoi(header.Get("X-Snapshot-Chunk-Total")); err != nil || parts > maxParts {
				return nil, "", fmt.Errorf("its snapshot has not 1 to %d parts", maxParts)
			}
			// Without the limit, each part but the first is empty.
			query = url.Values{"id": {header.Get("X-Snapshot-Id")}, "limit": {strconv.Itoa(snapshotLimit)}}
		}
		if all, err := strconv.Atoi(header.Get("X-Snapshot-Object-Count")); part+1 >= parts && err == nil && all != lines {
			return nil, "", fmt.Errorf("its snapshot has %d agents of %d", lines, all)
		}
		query.Set("chunk", strconv.Itoa(part+1))
	}
	return found, seq, nil
}

// changes waits for changes after the last one. The specification names the number start_seq; the registry of ACPs v2.1
// reads seq, and would begin with its oldest change without it.
func (f *Feed) changes(ctx context.Context) (found map[agentKey]state, seq string, err error) {
	found = make(map[agentKey]state)
	header, _, err := f.get(ctx, "/changes", url.Values{"seq": {f.seq}, "start_seq": {f.seq},
		"wait": {strconv.Itoa(int(pollWait / time.Second))}}, found)
	if err != nil {
		return nil, "", err
	}
	seq = header.Get("X-Next-Seq")
	if _, err := strconv.ParseUint(seq, 10, 63); err != nil {
		return nil, "", errors.New("its changes have no number")
	}
	return found, seq, nil
}

// get gets one answer, and adds its agents. It returns the lines of it.
func (f *Feed) get(ctx context.Context, path string, query url.Values, found map[agentKey]state,
) (header http.Header, lines int, err error) {
	answer, err := f.client.Get(ctx, feedPath+path, query)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode == http.StatusNoContent {
		return answer.Header, 0, nil
	}
	lines, err = readAgents(http.MaxBytesReader(nil, answer.Body, maxAnswerPart), found)
	return answer.Header, lines, err
}
