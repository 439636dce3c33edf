// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// A registry of ACPs (DSP v2.1) gives a snapshot of its agents, and then their changes: the request for these waits
// until there is one. An agent that is disabled or deleted is a change to active: false.

const (
	registryPath = "/acps-dsp-v2"
	pollWait     = 30 * time.Second
	// pollPause is how long is waited after an answer that came at once and says nothing new.
	pollPause = 5 * time.Second
	// pollFresh is for how long what a registry has said counts after its last answer.
	pollFresh     = 2 * time.Minute
	snapshotLimit = 1000     // agents in one part of a snapshot
	maxParts      = 4096     // of a snapshot
	maxLine       = 1 << 20  // bytes of one agent
	maxAgents     = 1 << 20  // that are known at once
	maxAnswerPart = 64 << 20 // bytes of one answer
)

// registry follows which agents are active.
type registry struct {
	place  int // among the sources
	name   string
	base   string
	client *http.Client
	seq    string // of the last change; empty before the first snapshot; used by the goroutine that follows

	mu       sync.RWMutex // guards what follows
	active   map[agentKey]bool
	inactive int       // of them
	given    time.Time // the last answer
	err      error     // why there is nothing newer
}

// agentKey stands for an AIC, in less memory.
type agentKey [16]byte

func keyOf(aic string) (k agentKey) {
	sum := sha256.Sum256([]byte(aic))
	copy(k[:], sum[:])
	return k
}

// byRegistries says what the registries say about the agent of a certificate, the first that knows it.
func (c *Checker) byRegistries(cert *x509.Certificate, now time.Time) (v verdict) {
	if len(c.registries) == 0 {
		return v
	}
	aic := c.config.Agent(cert)
	if aic == "" {
		return v
	}
	key := keyOf(aic)
	for _, r := range c.registries {
		r.mu.RLock()
		active, is := r.active[key]
		given := r.given
		r.mu.RUnlock()
		switch {
		case is && !active:
			return verdict{revoked, r.name, r.place}
		case is && v.outcome == unknown:
			v = verdict{c.judge(span{until: given.Add(pollFresh), given: given, good: given}, now), r.name, r.place}
		}
	}
	return v
}

// followRegistry follows a registry until the Checker is closed.
func (c *Checker) followRegistry(r *registry) {
	failures := 0
	for wait := time.Duration(0); c.pause(wait); {
		began := time.Now()
		news, asked, err := c.poll(r)
		switch {
		case err != nil:
			failures++
			wait = max(asked, c.retryIn(failures))
			continue
		case !news && time.Since(began) < pollPause:
			wait = pollPause
		default:
			wait = 0
		}
		failures = 0
	}
}

// poll gets what is new once. It returns whether something is, and for how long the registry asks to wait.
func (c *Checker) poll(r *registry) (news bool, asked time.Duration, err error) {
	ctx, cancel := context.WithTimeout(c.ctx, fetchTimeout)
	defer cancel()
	whole, get := r.seq == "", r.changes
	if whole {
		get = r.snapshot
	}
	found, seq, asked, err := get(ctx)
	switch {
	case err != nil && c.ctx.Err() != nil:
		return false, 0, err
	case errors.Is(err, errTooOld) && !whole:
		r.seq = ""
		return true, 0, nil
	}
	r.mu.Lock()
	before := r.err
	if err == nil {
		news, err = r.merge(found, whole)
	}
	if r.err = err; err == nil {
		r.seq, r.given = seq, time.Now()
	}
	agents, inactive := len(r.active), r.inactive
	r.mu.Unlock()
	switch {
	case err == nil && (before != nil || whole):
		c.log.Info("a registry is followed", "source", r.name, "agents", agents, "inactive", inactive)
	case err != nil && (before == nil || before.Error() != err.Error()):
		c.log.Warn("a registry cannot be followed", "source", r.name, "error", err)
	}
	if news {
		c.mu.Lock()
		c.change()
		c.mu.Unlock()
	}
	return news, asked, err
}

// merge puts what was found into force; whole says that it is all there is. An agent that is missing in a whole keeps
// being inactive. r.mu is held.
func (r *registry) merge(found map[agentKey]bool, whole bool) (news bool, err error) {
	next := r.active
	if whole {
		next = make(map[agentKey]bool, len(found))
		for key, active := range r.active {
			if !active {
				next[key] = false
			}
		}
	}
	if len(next)+len(found) > maxAgents {
		return false, fmt.Errorf("it has more than %d agents", maxAgents)
	}
	for key, active := range found {
		was, is := r.active[key]
		news = news || !is || was != active
		if is && !was {
			r.inactive--
		}
		if !active {
			r.inactive++
		}
		next[key] = active
	}
	r.active = next
	return news, nil
}

// errTooOld says that the registry no longer has a snapshot, or the changes that follow the last one.
var errTooOld = errors.New("the registry no longer has it")

// snapshot gets all agents.
func (r *registry) snapshot(ctx context.Context) (found map[agentKey]bool, seq string, asked time.Duration, err error) {
	found = make(map[agentKey]bool)
	query := url.Values{"types": {"acs"}, "limit": {strconv.Itoa(snapshotLimit)}}
	lines, parts := 0, 1
	for part := 0; part < parts; part++ {
		header, n, wait, err := r.get(ctx, "/snapshots", query, found)
		if err != nil {
			return nil, "", wait, err
		}
		lines += n
		if part == 0 {
			seq = header.Get("X-Snapshot-Seq")
			if _, err := strconv.ParseUint(seq, 10, 63); err != nil {
				return nil, "", 0, errors.New("its snapshot has no number")
			}
			if parts, err = strconv.Atoi(header.Get("X-Snapshot-Chunk-Total")); err != nil || parts > maxParts {
				return nil, "", 0, fmt.Errorf("its snapshot has not 1 to %d parts", maxParts)
			}
			// Without the limit, each part but the first is empty.
			query = url.Values{"id": {header.Get("X-Snapshot-Id")}, "limit": {strconv.Itoa(snapshotLimit)}}
		}
		if all, err := strconv.Atoi(header.Get("X-Snapshot-Object-Count")); part+1 >= parts && err == nil && all != lines {
			return nil, "", 0, fmt.Errorf("its snapshot has %d agents of %d", lines, all)
		}
		query.Set("chunk", strconv.Itoa(part+1))
	}
	return found, seq, 0, nil
}

// changes waits for what has changed since the last change.
func (r *registry) changes(ctx context.Context) (found map[agentKey]bool, seq string, asked time.Duration, err error) {
	found = make(map[agentKey]bool)
	header, _, asked, err := r.get(ctx, "/changes", url.Values{"seq": {r.seq},
		"wait": {strconv.Itoa(int(pollWait / time.Second))}}, found)
	if err != nil {
		return nil, "", asked, err
	}
	seq = header.Get("X-Next-Seq")
	if _, err := strconv.ParseUint(seq, 10, 63); err != nil {
		return nil, "", 0, errors.New("its changes have no number")
	}
	return found, seq, 0, nil
}

// get gets one answer, and adds its agents. It returns the lines of it.
func (r *registry) get(ctx context.Context, path string, query url.Values, found map[agentKey]bool,
) (header http.Header, lines int, asked time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base+registryPath+path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, 0, 0, err
	}
	answer, err := r.client.Do(request)
	if err != nil {
		return nil, 0, 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	switch answer.StatusCode {
	case http.StatusOK:
		lines, err = readAgents(http.MaxBytesReader(nil, answer.Body, maxAnswerPart), found)
		return answer.Header, lines, 0, err
	case http.StatusNoContent:
		return answer.Header, 0, 0, nil
	case http.StatusGone:
		return nil, 0, 0, errTooOld
	}
	return nil, 0, retryAfter(answer.Header), fmt.Errorf("it is answered with %s", answer.Status)
}

// readAgents reads agents, one in a line, in the order of their changes.
func readAgents(r io.Reader, found map[agentKey]bool) (lines int, err error) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, maxLine)
	for scanner.Scan() {
		if len(scanner.Bytes()) == 0 {
			continue
		}
		var change struct {
			Op      string `json:"op"`
			Type    string `json:"type"`
			ID      string `json:"id"`
			Payload struct {
				Active bool `json:"active"`
			} `json:"payload"`
		}
		if err := json.Unmarshal(scanner.Bytes(), &change); err != nil {
			return lines, fmt.Errorf("a change cannot be read: %w", err)
		}
		lines++
		if change.Type != "acs" {
			continue
		}
		if found[keyOf(change.ID)] = change.Op == "upsert" && change.Payload.Active; len(found) > maxAgents {
			return lines, fmt.Errorf("it has more than %d agents", maxAgents)
		}
	}
	return lines, scanner.Err()
}
