// SPDX-License-Identifier: Apache-2.0

package node

import (
	"crypto/x509"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/trust/kept"
	"github.com/aip-gateway/aip-gateway/trust/revocation"
)

// TestRootsNoLongerRead: a Leader whose root was in a file that no configuration reads any more has its standing again
// when it calls by a certificate that another pool trusts.
func TestRootsNoLongerRead(t *testing.T) {
	leaf, _ := newRoot(t, "leader")
	c := start(t, NewProcess(Host{}), at("a"), Settings{})
	defer end(t, c)
	leaders := c.Node().Leaders
	chain := []*x509.Certificate{leaf, leaf}
	if err := leaders.Called(t.Context(), "leader", kept.Proof{Chain: chain, Pool: rootPool}, true); err != nil {
		t.Fatal(err)
	}
	leaders.Judge(t.Context(), c.Trust.keeps)
	if c.Trust.isJudging() || !leaders.Lost("leader") {
		t.Fatal("the Leader has not lost its standing by the file that is read no more")
	}
	if err := c.Trust.Called(t.Context(), "leader", [][]*x509.Certificate{chain}, false); err != nil {
		t.Fatal(err)
	}
	if leaders.Lost("leader") {
		t.Error("the Leader does not have its standing again, though it calls by a certificate that counts")
	}
	leaders.Judge(t.Context(), c.Trust.keeps)
	if leaders.Lost("leader") {
		t.Error("the Leader has lost its standing again")
	}
}

// TestCheckerOf: sources that are given for some roots decide in place of the others, and each source is reported once.
func TestCheckerOf(t *testing.T) {
	one, _ := newRoot(t, "one")
	two, _ := newRoot(t, "two")
	made := func(lists ...string) *revocation.Checker {
		c := revocation.Config{Log: slog.New(slog.DiscardHandler)}
		for _, list := range lists {
			c.Sources = append(c.Sources, revocation.Source{Kind: revocation.CRL, Location: list})
		}
		checker, err := revocation.New(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(checker.Close)
		return checker
	}
	all, own := made("/a", "/b"), made("/b", "/c")
	trust := &NewProcess(Host{}).NewConfiguration().Trust
	if len(trust.Sources()) > 0 || trust.CheckerOf([]*x509.Certificate{one}) != nil || trust.isJudging() {
		t.Error("there is a checker before it is given")
	}
	trust.Ask(all)
	trust.Ask(own, two)
	for cert, want := range map[*x509.Certificate]*revocation.Checker{one: all, two: own} {
		if got := trust.CheckerOf([]*x509.Certificate{one, cert}); got != want {
			t.Errorf("%s has another checker", cert.Subject.CommonName)
		}
	}
	var found []string
	for _, s := range trust.Sources() {
		found = append(found, s.Location)
	}
	if diff := cmp.Diff([]string{"/a", "/b", "/c"}, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !trust.isJudging() {
		t.Error("there is no checker")
	}
}
