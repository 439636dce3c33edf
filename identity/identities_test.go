// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"reflect"
	"testing"
	"time"
)

func TestIdentities(t *testing.T) {
	const (
		aic   AIC = "10001000011K912345E789ABCDEF2353"
		other AIC = "10001000011K94ZH3VDXLP4S5EB63614"
	)
	var i Identities
	for range 2 { // the same pair again changes nothing
		if err := i.Add(aic, "alice.aid.pub"); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.Add(aic, "bob.aid.pub"); err == nil {
		t.Error("an AIC got two AIDs")
	}
	if err := i.Add(other, "alice.aid.pub"); err == nil {
		t.Error("an AID got two AICs")
	}
	if got := i.AID(aic); got != "alice.aid.pub" {
		t.Errorf("the AID is %q", got)
	}
	if got := i.AID(other); got != "" {
		t.Errorf("an AIC without an AID has %q", got)
	}

	ends := time.Unix(1e9, 0)
	alice := Peer{Proof: ByToken, Kind: AIDKind, ID: "alice.aid.pub", Expires: ends}
	want := Peer{Proof: ByToken, Kind: AICKind, ID: string(aic), Expires: ends}
	if got := i.Of(alice); !reflect.DeepEqual(got, want) {
		t.Errorf("the peer is %+v", got)
	}
	certified := Peer{Proof: ByCertificate, Kind: AICKind, ID: string(aic)}
	if one, two := i.Of(alice).Leader(), i.Of(certified).Leader(); one != two {
		t.Errorf("one agent is two Leaders, %q and %q", one, two)
	}
	bob := Peer{Proof: ByToken, Kind: AIDKind, ID: "bob.aid.pub"}
	if got := i.Of(bob); !reflect.DeepEqual(got, bob) {
		t.Errorf("a peer without an AIC is %+v", got)
	}

	for leader, want := range map[string]string{
		i.Of(alice).Leader(): "alice.aid.pub",
		i.Of(bob).Leader():   "bob.aid.pub",
		string(other):        "",
		"aid:":               "",
		"anonymous":          "",
	} {
		if got := i.LeaderAID(leader); got != want {
			t.Errorf("the AID of %q is %q, want %q", leader, got, want)
		}
	}
}

// TestAIDLeaders: an AID in the form of another kind of Leader is not this Leader.
func TestAIDLeaders(t *testing.T) {
	var none Identities
	p := none.Of(Peer{Proof: ByToken, Kind: AIDKind, ID: "10001000011K912345E789ABCDEF2353"})
	if got := p.Leader(); got != "aid:10001000011K912345E789ABCDEF2353" {
		t.Errorf("the Leader is %q", got)
	}
}

// TestJoin joins names of every kind, and asks for the Leader of whoever has proven one.
func TestJoin(t *testing.T) {
	const aic, second = "10001000011K912345E789ABCDEF2353", "10001000011K94ZH3VDXLP4S5EB63614"
	var i Identities
	for _, set := range [][]string{
		{aic, "aid:alice.aid.pub", "jwt:https://id.example|alice", "key:alice"},
		{"key:reports", "jwt:https://id.example|reports", "aid:reports.aid.pub"},
	} {
		if err := i.Join(set[0], set[1:]...); err != nil {
			t.Fatal(err)
		}
		for _, name := range set {
			kind, id := SplitLeader(name)
			if got := i.Of(Peer{Proof: ByToken, Kind: kind, ID: id}).Leader(); got != set[0] {
				t.Errorf("%s is the Leader %q, want %q", name, got, set[0])
			}
		}
	}
	for leader, want := range map[string]string{
		aic: "alice.aid.pub", "key:reports": "reports.aid.pub", "key:alice": "", "key:other": "",
	} {
		if got := i.LeaderAID(leader); got != want {
			t.Errorf("the AID of %q is %q, want %q", leader, got, want)
		}
	}
	for _, p := range []Peer{
		{}, {Kind: KeyKind, ID: "alice"}, // nothing is proven
		{Proof: ByToken, Kind: JWTKind, ID: "https://other.example|alice"},
		{Proof: ByHost, Kind: OperatorKind, ID: "console"},
	} {
		if got := i.Of(p); !reflect.DeepEqual(got, p) {
			t.Errorf("%+v became %+v", p, got)
		}
	}
	for _, set := range [][]string{
		{"key:other", second},                // an AIC is no other name of a key
		{second, "key:alice"},                // it belongs to another agent
		{second, "key:reports"},              // it stands for others
		{"key:alice", "key:other"},           // it is one with another
		{second, second},                     // with itself
		{aic, "aid:second.aid.pub"},          // a second AID
		{"key:other", "aid:reports.aid.pub"}, // likewise
	} {
		if err := i.Join(set[0], set[1:]...); err == nil {
			t.Errorf("%s was joined", set)
		}
	}
}
