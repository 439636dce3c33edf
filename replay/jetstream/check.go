// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/natsext"

	"github.com/aip-gateway/aip-gateway/replay"
)

const (
	// checkedHeads is the greatest number of heads looked at by one request. A server takes 1,024 subjects. Its whole
	// answer is in memory at once.
	checkedHeads = 250
	// wholeChecks is the number of checks for one that looks at all heads, and not only at those written since the check
	// before: only so a dropped and already purged log is found.
	wholeChecks = 12
)

// watch begins the checks whether notifications of the stream were lost, with the first watched log. There are checks
// of the stream and not of each log: while nothing is written, one look at the stream is enough for all of its logs. mu
// is held.
func (st *stream) watch() {
	if st.watched++; st.watched == 1 {
		st.checks = time.AfterFunc(st.jitter(), func() {
			st.check()
			st.mu.Lock()
			defer st.mu.Unlock()
			if st.checks != nil {
				st.checks.Reset(st.jitter())
			}
		})
	}
}

// unwatch ends the checks with the last watched log. mu is held.
func (st *stream) unwatch() {
	if st.watched--; st.watched == 0 {
		st.checks.Stop()
		st.checks = nil
	}
}

// jitter returns when it is to be checked next whether anything was missed.
func (st *stream) jitter() time.Duration {
	d := st.config.CheckAfter
	return d/2 + rand.N(d)
}

// check looks whether the readers of the watched logs have missed anything, if the stream has grown since the last
// check. After a failure the next check looks again.
func (st *stream) check() {
	ctx, cancel := context.WithTimeout(context.Background(), st.config.GiveUp)
	defer cancel()
	if st.opened() != nil {
		return // its readers see all appends
	}
	last, err := st.lastSequence(ctx)
	if err != nil {
		return
	}
	st.mu.Lock()
	logs := slices.Collect(maps.Values(st.followed)) // after the look at the stream: a later reader reads a later head
	since := st.checked
	if st.round++; st.round%wholeChecks == 0 {
		since = 0
	}
	known := last == since || last == st.checkedWhole
	st.mu.Unlock()
	if known {
		return
	}
	// To read what was written costs less than to ask for many logs that were not.
	if since > 0 && int(last-since)/pageMessages < len(logs)/checkedHeads {
		if st.checkNew(ctx, since, last) {
			st.mu.Lock()
			st.checked = last
			st.mu.Unlock()
		}
		return
	}
	most := st.room() / len(st.headSubject(strings.Repeat("x", replay.MaxName)))
	for some := range slices.Chunk(logs, min(max(most, 1), checkedHeads)) {
		if !st.checkLogs(ctx, some, since, last) {
			return
		}
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.checked = last; since == 0 {
		st.checkedWhole = last
	}
}

// checkNew looks at the heads written after a message and before the last one. It reports whether it has seen them all.
func (st *stream) checkNew(ctx context.Context, since, last uint64) bool {
	err := st.heads(ctx, since, last, func(m message) error {
		name, _, err := logOf(st.prefix, m.subject)
		if err != nil {
			return err
		}
		f := st.follower(name)
		if f == nil {
			return nil
		}
		if before := f.headSeq(); !st.show(f, m, before) && !st.checkLeader(ctx, f, before) {
			return replay.ErrUnavailable
		}
		return nil
	})
	return err == nil
}

// checkLogs looks at the heads of some logs, those written since a message; 0 for all. It reports whether they are as
// of the last message of the stream at least.
func (st *stream) checkLogs(ctx context.Context, logs []*followed, since, last uint64) bool {
	subjects := make([]string, 0, len(logs))
	asked := make(map[string]*followed, len(logs))
	before := make(map[string]uint64, len(logs))
	for _, f := range logs {
		subject := st.headSubject(f.log)
		subjects, asked[subject] = append(subjects, subject), f
		before[subject] = f.headSeq()
	}
	heads, upTo, err := st.lastOf(ctx, subjects, since)
	if err != nil {
		return false
	}
	left := make(map[string]*followed) // the leader is to be asked for their heads
	if since == 0 {
		maps.Copy(left, asked)
	}
	for _, m := range heads {
		if f := asked[m.subject]; f == nil {
			continue
		} else if st.show(f, m, before[m.subject]) {
			delete(left, m.subject)
		} else {
			left[m.subject] = f
		}
	}
	for subject, f := range left {
		if !st.checkLeader(ctx, f, before[subject]) {
			return false
		}
	}
	// Else the answering replica may lag. Without heads on it, the leader was asked for each of them.
	return upTo >= last || since == 0 && len(heads) == 0
}

// show has the readers of a log read a head that a check has read. seq is the sequence of the head known before. It
// reports whether that is all: the leader must be asked for a head in several parts.
func (st *stream) show(f *followed, m message, seq uint64) bool {
	switch {
	case m.seq <= seq:
	case len(m.data) > 0 && !isWhole(m.data):
		return false
	case f.receiveHead(m.data, m.seq):
		st.found(f, seq)
	}
	return true
}

// checkLeader looks at the leader's head of a log. seq is the sequence of the head known before. It reports whether the
// leader has answered.
func (st *stream) checkLeader(ctx context.Context, f *followed, seq uint64) bool {
	news := false
	switch h, err := st.readHead(ctx, f.log); {
	case err == nil:
		news = f.update(&h, h.seq)
	case errors.Is(err, replay.ErrNotFound):
		f.mu.Lock()
		if f.seq == seq { // it has not begun again meanwhile
			news = f.head != nil
			f.clear()
		}
		f.mu.Unlock()
	default:
		return false
	}
	if news {
		st.found(f, seq)
	}
	return true
}

// found has the readers of a log read the findings of a check. seq is the sequence of the head known before; 0 if its
// first reader was just about to read it, so nothing was missed.
func (st *stream) found(f *followed, seq uint64) {
	if seq > 0 {
		st.missed.Add(1)
	}
	f.waiters.Call()
}

// lastOf returns the last message of each of some subjects, if its sequence is not lower than since, as on a replica;
// the replica may lag. upTo is the sequence of the last message that it knows; 0 if it has none of those. Beyond the
// number of bytes a server sends, the last ones are missing, and upTo is 0.
func (st *stream) lastOf(ctx context.Context, subjects []string, since uint64) (all []message, upTo uint64, err error) {
	request, err := json.Marshal(struct {
		Subjects []string `json:"multi_last"`
		Seq      uint64   `json:"seq,omitempty"`
	}{subjects, since})
	if err != nil {
		return nil, 0, err
	}
	once, stop := context.WithTimeout(ctx, requestLimit)
	defer stop()
	const ofStatus = "Status" // a message without data, not of the stream: the end, or an error
	answers, err := natsext.RequestMany(once, st.nc, "$JS.API.DIRECT.GET."+st.name, request,
		natsext.RequestManySentinel(func(m *nats.Msg) bool {
			if m.Header.Get(ofStatus) != statusEnd {
				return false
			}
			if m.Header.Get("Nats-Num-Pending") == "0" {
				upTo, _ = strconv.ParseUint(m.Header.Get("Nats-UpTo-Sequence"), 10, 64)
			}
			return true
		}))
	if err != nil {
		return nil, 0, err
	}
	last := uint64(0)
	for m, err := range answers {
		if err != nil {
			return nil, 0, err
		}
		switch status := m.Header.Get(ofStatus); status {
		case "":
		case statusNone:
			return nil, 0, nil
		default:
			return nil, 0, fmt.Errorf("the stream %s answers %s %s", st.name, status, m.Header.Get("Description"))
		}
		seq, err := strconv.ParseUint(m.Header.Get(natsjs.SequenceHeader), 10, 64)
		if err != nil {
			return nil, 0, fmt.Errorf("the stream %s: %w", st.name, err)
		}
		if !comesAfter(m.Header, last) {
			return nil, 0, st.lostPart()
		}
		last = seq
		all = append(all, message{m.Header.Get(natsjs.SubjectHeader), seq, m.Data})
	}
	return all, upTo, nil
}

// The statuses by which a server says that it has sent all messages, and that there is none.
const (
	statusEnd  = "204"
	statusNone = "404"
)
