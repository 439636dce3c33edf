// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"crypto/x509"
	"time"

	"github.com/aip-gateway/aip-gateway/acps/registry"
)

// follower is a source of the active agents, by the feed of a registry.
type follower struct {
	place int // among the sources
	name  string
	base  string
	feed  *registry.Feed
}

// byRegistries returns the verdict of the first registry knowing the agent of a certificate.
func (c *Checker) byRegistries(cert *x509.Certificate, now time.Time) (v verdict) {
	if len(c.registries) == 0 {
		return v
	}
	aic := c.config.Agent(cert)
	if aic == "" {
		return v
	}
	for _, r := range c.registries {
		switch s := r.feed.Agent(aic); {
		case s.Known && !s.Active:
			return verdict{revoked, r.name, r.place}
		case s.Known && v.outcome == unknown:
			times := span{until: s.Answered.Add(registry.Fresh), given: s.Answered}
			v = verdict{c.judge(times, now), r.name, r.place}
		}
	}
	return v
}

// followRegistry announces each change of the registry, until the Checker is closed. changed is the channel of the next
// change.
func (c *Checker) followRegistry(r *follower, changed <-chan struct{}) {
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-changed:
		}
		changed = r.feed.Changed()
		c.mu.Lock()
		c.change()
		c.mu.Unlock()
	}
}
