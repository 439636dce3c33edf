// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
)

// checked returns a policy of ten rules and two quotas, and an admitted call.
func checked(t testing.TB) (*Policy, *Call) {
	store := replay.NewMemory(replay.Settings{})
	c := Config{Partner: "partner", Quotas: []Quota{
		{Name: "q", Calls: Rate{maxRate, time.Second, maxRate}, Bytes: maxCount},
		{Name: "r", Of: OfAgent, Calls: Rate{maxRate, time.Second, maxRate}},
	}}
	for range 9 {
		c.Rules = append(c.Rules, Rule{Deny: true, Match: Match{Vendor: []string{"1.2.156.3088.1.1.999"},
			Certificate: map[string][]string{"organization": {"X"}}, Command: []string{"start"}}})
	}
	c.Rules = append(c.Rules, Rule{Match: Match{Certificate: map[string][]string{"organization": {"ACME"}}}})
	p := newPolicy(t, c)
	b := OpenBook(shard.One(store), time.Now, slog.New(slog.DiscardHandler))
	p.Open(b)
	t.Cleanup(func() {
		b.Close()
		_ = store.Close()
	})
	return p, callOf(byCertificate(aicV1))
}

// check is the work for each call.
func check(t testing.TB, p *Policy, c *Call, u *Use) {
	if err := p.Decide(context.Background(), c, u); err != nil {
		t.Fatal(err)
	}
	_ = u.Send(500)
	u.End()
}

// BenchmarkDecide measures the check of a call.
func BenchmarkDecide(b *testing.B) {
	p, c := checked(b)
	var u Use
	b.ReportAllocs()
	for b.Loop() {
		check(b, p, c, &u)
	}
}

// TestDecideAllocatesNothing: the check is on the way of every call.
func TestDecideAllocatesNothing(t *testing.T) {
	p, c := checked(t)
	var u Use
	if n := testing.AllocsPerRun(1000, func() { check(t, p, c, &u) }); n > 0 {
		t.Errorf("a check allocates %v times", n)
	}
}
