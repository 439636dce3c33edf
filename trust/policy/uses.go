// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"context"
	"iter"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
)

// Decided is a rule or a quota, and its decisions since the process began.
type Decided struct {
	Count
	Kind  string // allow, deny or quota
	Tried bool   // in a dry run
}

// Rules yields the rules in the order of their evaluation, and then the quotas.
func (p *Policy) Rules() iter.Seq[Decided] {
	return func(yield func(Decided) bool) {
		for i := range p.rules {
			r := &p.rules[i]
			kind := "allow"
			if r.deny {
				kind = "deny"
			}
			if !yield(Decided{r.counts.count(r.name), kind, p.config.DryRun}) {
				return
			}
		}
		for i := range p.quotas {
			q := &p.quotas[i]
			if !yield(Decided{q.counts.count(q.Name), "quota", q.DryRun}) {
				return
			}
		}
	}
}

// Used is a quota's count under one key on a day.
type Used struct {
	Quota         string
	Of            string // a Leader, or a Partner; empty for all callers of the quota
	Day           time.Time
	Starts, Bytes int64
}

// UseFilter selects counts of quotas. An unset field selects all.
type UseFilter struct {
	Quota, Of string
	After     string // the end of the page before, as returned by Uses
	Limit     int    // of a page; default 100, at most 1000
}

// Uses returns a page of the counts of quotas in the shards owned by this process, in the order of their names, and the
// name after which the next page begins; empty for none. Counts not in the store yet are written before.
func (b *Book) Uses(ctx context.Context, f UseFilter) (page []Used, next string, err error) {
	b.flush(ctx)
	limit := min(cmp.Or(max(f.Limit, 0), 100), 1000)
	prefix := string(logname.Quota)
	if f.Quota != "" {
		prefix = logname.QuotaOf(f.Quota, "")
	}
	var all []iter.Seq2[replay.Entry, error]
	for h := range b.homes.All() {
		all = append(all, h.store.List(ctx, prefix, f.After))
	}
	byName := func(a, b replay.Entry) int { return cmp.Compare(a.Log, b.Log) }
	for one, err := range replay.Merge(byName, all...) {
		if err != nil {
			return nil, "", unreadable(ctx, err)
		}
		name, of, _ := strings.Cut(one.Log[1:], logname.Separator)
		if f.Of != "" && f.Of != of {
			continue
		}
		s, err := decodeState(one.Head.Metadata)
		if err != nil {
			continue
		}
		if len(page) == limit {
			return page, next, nil
		}
		next = one.Log
		page = append(page, Used{name, of, time.Unix(s.day*day, 0), s.starts, s.bytes})
	}
	return page, "", nil
}
