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

// An AID that looks like a Leader of another kind is not that Leader.
func TestAIDLeaders(t *testing.T) {
	var none Identities
	p := none.Of(Peer{Proof: ByToken, Kind: AIDKind, ID: "10001000011K912345E789ABCDEF2353"})
	if got := p.Leader(); got != "aid:10001000011K912345E789ABCDEF2353" {
		t.Errorf("the Leader is %q", got)
	}
}
