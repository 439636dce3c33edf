// SPDX-License-Identifier: Apache-2.0

package agentca

import (
	"crypto/tls"
	"errors"
	"time"
)

// Status is how the certificates of an agent stand.
type Status struct {
	AIC          string
	Account      string // its URL; empty before there is one
	Retired      bool
	Err          error     // why the last attempt has failed; nil if it has not
	Retry        time.Time // when the next attempt is made; zero if none has failed
	NeedsEAB     bool      // only a new EAB helps
	Inactive     bool      // the registry has the agent as inactive
	Certificates []Held
}

// Held is one certificate of a Status.
type Held struct {
	Usage   Usage
	Pair    *tls.Certificate // with its leaf
	Renewal time.Time
	Revoked bool
}

// Status returns how the certificates stand.
func (k *Keeper) Status() Status {
	pairs := *k.pairs.Load()
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.status
	for _, u := range k.usages() {
		if p := pairs[u]; p != nil {
			s.Certificates = append(s.Certificates, Held{u, &p.Certificate, p.renewal(), k.revoked[p.serial()]})
		}
	}
	return s
}

// report keeps how the last attempt has ended, and logs what is new.
func (k *Keeper) report(err error, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.status.Err
	k.status.Err, k.status.NeedsEAB = err, errors.Is(err, errNoEAB)
	k.status.Inactive = errors.Is(err, errInactive)
	if err == nil {
		k.failures, k.retry, k.status.Retry = 0, time.Time{}, time.Time{}
		return
	}
	wait := lastRetry
	switch {
	case k.status.NeedsEAB, k.status.Inactive, isKind(err, badNonce, invalidID):
		wait = firstRetry // nothing is spent by looking again, and the registry may enable the agent
	case k.failures < 6:
		wait = min(lastRetry, firstRetry<<k.failures)
		k.failures++
	}
	if p, ok := errors.AsType[*Problem](err); ok {
		wait = max(wait, p.Wait)
	}
	k.retry = now.Add(wait)
	k.status.Retry = k.retry
	if before == nil || before.Error() != err.Error() {
		// What to do: see docs/certificates.md#what-only-a-person-can-do.
		k.Log.Warn("the certificates of the agent cannot be ordered or renewed", "error", err, "retry", k.retry.UTC())
	}
}

// warnDays are how many days before its end a certificate that was not renewed is warned of.
var warnDays = [...]int{1, 7, 30}

// warn warns of certificates that should have been renewed, and end soon.
func (k *Keeper) warn(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for u, p := range *k.pairs.Load() {
		left := p.Leaf.NotAfter.Sub(now)
		if now.Before(p.renewal()) {
			continue
		}
		for _, days := range warnDays {
			if left > time.Duration(days)*24*time.Hour {
				continue
			}
			if last, is := k.warned[p.serial()]; !is || days < last {
				k.warned[p.serial()] = days
				k.Log.Warn("a certificate of the agent ends soon, and is not renewed", "usage", nameOf(u),
					"until", p.Leaf.NotAfter.UTC(), "days", days, "error", k.status.Err)
			}
			break
		}
	}
}
