// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Rate bounds the number of events: N in Per, evenly, and Burst at once. The zero Rate is none.
type Rate struct {
	N     int64
	Per   time.Duration
	Burst int64
}

// per has the possible units behind the slash of a Rate.
var per = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}

// maxCount is the greatest number in a limit. Sums of a few do not overflow.
const maxCount = 1 << 50

// ParseRate reads a rate, such as 50/s, or 50/s burst 100. Without a burst, as many events may happen at once as in a
// second, and at least one.
func ParseRate(s string) (r Rate, err error) {
	count, burst, bursts := strings.Cut(s, " burst ")
	n, unit, _ := strings.Cut(count, "/")
	var ok bool
	if r.Per, ok = per[unit]; !ok {
		return Rate{}, fmt.Errorf("%q is no rate; write for example 50/s, 600/m or 50/s burst 100", s)
	}
	if r.N, err = parseCount(n); err != nil {
		return Rate{}, err
	}
	r.Burst = max(1, r.N*int64(time.Second)/int64(r.Per))
	if bursts {
		r.Burst, err = parseCount(burst)
	}
	if r.N > maxRate || r.Burst > maxRate {
		err = fmt.Errorf("%q is more than %d", s, maxRate)
	}
	if err != nil {
		return Rate{}, err
	}
	return r, nil
}

// maxRate bounds the numbers of a Rate.
const maxRate = 1_000_000_000

// ParseDaily reads a count a day, such as 1000/day.
func ParseDaily(s string) (int64, error) {
	n, ok := strings.CutSuffix(s, "/day")
	if !ok {
		return 0, fmt.Errorf("%q is no count of a day; write for example 1000/day", s)
	}
	return parseCount(n)
}

// ParseDailyBytes reads a size a day, such as 1GiB/day, in bytes.
func ParseDailyBytes(s string) (int64, error) {
	size, ok := strings.CutSuffix(s, "/day")
	if !ok {
		return 0, fmt.Errorf("%q is no size of a day; write for example 1GiB/day", s)
	}
	n, err := humanize.ParseBytes(size)
	if err != nil || n == 0 || n > maxCount {
		return 0, fmt.Errorf("%q is no size of a day; write for example 1GiB/day", s)
	}
	return int64(n), nil
}

func parseCount(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || n > maxCount {
		return 0, errors.New(strconv.Quote(s) + " is no whole number above 0")
	}
	return n, nil
}

// bucket holds the calls possible at once. It fills at its rate.
type bucket struct {
	level float64
	at    time.Time // the time of level; zero for a full bucket
}

// fill brings the bucket to a time. A time before the last one changes nothing.
func (b *bucket) fill(r Rate, now time.Time) {
	full := float64(r.Burst)
	if b.at.IsZero() {
		b.level, b.at = full, now
		return
	}
	// Two calls may come in another order than their times, and a clock may have gone back since the level was stored.
	if passed := now.Sub(b.at); passed > 0 || passed < -time.Second {
		b.level += float64(r.N) * float64(max(0, passed)) / float64(r.Per)
		b.at = now
	}
	b.level = min(b.level, full)
}

// take takes one call out of the bucket. If there is none, it returns the time until there is one.
func (b *bucket) take(r Rate, now time.Time) (wait time.Duration, ok bool) {
	if b.fill(r, now); b.level >= 1 {
		b.level--
		return 0, true
	}
	return time.Duration((1 - b.level) * float64(r.Per) / float64(r.N)), false
}

// give gives n calls back.
func (b *bucket) give(r Rate, n int) { b.level = min(b.level+float64(n), float64(r.Burst)) }

// slow reports whether a bucket takes longer to fill than its level is unsaved, so a restart must not fill it.
func (r Rate) slow() bool {
	return r.N > 0 && float64(r.Burst)*float64(r.Per)/float64(r.N) > float64(flushEvery)
}
