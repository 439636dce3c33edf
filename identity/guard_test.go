// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/task"
)

const (
	aicV1 = "10001000011K912345E789ABCDEF2353"
	aicV2 = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"
	other = "1.2.156.3088.1.1.34C2.478BDF.3GF547.0GGS"
)

var testKey = sync.OnceValue(func() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
})

// certificate returns a self-signed certificate as it is after a trip over the wire.
func certificate(t testing.TB, commonName string, uris ...string) *x509.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: commonName, Organization: []string{"Test"}},
		NotBefore:    time.Unix(1_700_000_000, 0),
		NotAfter:     time.Unix(2_000_000_000, 0),
	}
	return sign(t, template, uris...)
}

func sign(t testing.TB, template *x509.Certificate, uris ...string) *x509.Certificate {
	t.Helper()
	for _, s := range uris {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = append(template.URIs, u)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, testKey().Public(), testKey())
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestFromCertificate(t *testing.T) {
	for _, tt := range []struct {
		name string
		cn   string
		uris []string
		want AIC
	}{
		{"v1", aicV1 + ".acps.pub", []string{"agent://" + aicV1}, aicV1},
		{"v1, other names beside it", aicV1 + ".acps.pub", []string{"https://agent.example.com/x", "agent://" + aicV1},
			aicV1},
		{"v1, lower case", strings.ToLower(aicV1) + ".ACPS.pub", []string{"AGENT://" + strings.ToLower(aicV1)}, aicV1},
		{"v1 profile, v2 AIC", aicV2 + ".acps.pub", []string{"agent://" + aicV2}, aicV2},
		{"v2", aicV2, []string{"acps://" + aicV2}, aicV2},
		{"v2, no SAN", aicV2, nil, aicV2},
		{"v2, foreign SAN", aicV2, []string{"spiffe://example.com/agent"}, aicV2},
		{"v2, lower case", strings.ToLower(aicV2), []string{"ACPS://" + strings.ToLower(aicV2)}, aicV2},
		{"v2, the same twice", aicV2, []string{"acps://" + aicV2, "acps://" + strings.ToLower(aicV2)}, aicV2},
		{"v2 profile, v1 AIC", aicV1, []string{"acps://" + aicV1}, aicV1},
	} {
		got, err := FromCertificate(certificate(t, tt.cn, tt.uris...))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestFromCertificateRefuses(t *testing.T) {
	two := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{ExtraNames: []pkix.AttributeTypeAndValue{
		{Type: oidCommonName, Value: aicV2}, {Type: oidCommonName, Value: aicV1},
	}}}
	for _, tt := range []struct {
		name string
		cert *x509.Certificate
		want string
	}{
		{"no CN", certificate(t, "", "acps://"+aicV2),
			"The client certificate has no common name, which must be the AIC."},
		{"two CNs", sign(t, two), "The client certificate has more than one common name, so it names no one AIC."},
		{"foreign", certificate(t, "leader.example.com"),
			"The common name of the client certificate is not an AIC: levels 1 to 4 of the AIC are not 1.2.156.3088."},
		{"wrong check digits", certificate(t, aicV1[:31]+"4", "acps://"+aicV1),
			"The common name of the client certificate is not an AIC: " +
				"the check digits of the AIC are 54, and 53 would be right."},
		{"v1 without SAN", certificate(t, aicV1+".acps.pub", "acps://"+aicV1),
			"The common name of the client certificate ends in .acps.pub, but the name agent://<AIC> is missing."},
		{"v2, another SAN", certificate(t, aicV2, "acps://"+other),
			"The acps:// name of the client certificate is not the AIC of its common name."},
		{"v2, two SANs", certificate(t, aicV2, "acps://"+aicV2, "acps://"+other),
			"The acps:// name of the client certificate is not the AIC of its common name."},
		{"v1, another SAN", certificate(t, aicV1+".acps.pub", "agent://"+aicV2),
			"The agent:// name of the client certificate is not the AIC of its common name."},
		{"v1, another SAN of the other profile", certificate(t, aicV1+".acps.pub", "agent://"+aicV1, "acps://"+aicV2),
			"The acps:// name of the client certificate is not the AIC of its common name."},
		{"SAN with a path", certificate(t, aicV1, "acps://"+aicV1+"/x"),
			"The acps:// name of the client certificate is not an AIC: the AIC has 34 characters, " +
				"neither the 32 of an AIC of v01.00 nor the dots of a later one."},
		{"SAN with a user", certificate(t, aicV1, "acps://x@"+aicV1),
			"The acps:// name of the client certificate is not an AIC: the AIC has 34 characters, " +
				"neither the 32 of an AIC of v01.00 nor the dots of a later one."},
	} {
		aic, err := FromCertificate(tt.cert)
		if aic != "" {
			t.Errorf("%s: gives %s", tt.name, aic)
		}
		if diff := cmp.Diff(outcome{Kind: task.AuthenticationRequired, Detail: tt.want}, outcomeOf(err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// outcome is a caller's view of an error.
type outcome struct {
	Kind   task.Kind
	Detail string
}

func outcomeOf(err error) outcome {
	var e *task.Error
	if errors.As(err, &e) {
		return outcome{e.Kind, e.Detail}
	}
	return outcome{Detail: errText(err)}
}

func TestGuardCheck(t *testing.T) {
	cert := certificate(t, aicV2, "acps://"+aicV2)
	peer := Peer{Proof: ByCertificate, Kind: AICKind, ID: aicV2, Expires: cert.NotAfter}
	foreign := certificate(t, "localhost")

	verified := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert},
		VerifiedChains: [][]*x509.Certificate{{cert}}}
	unverified := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
	stranger := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{foreign},
		VerifiedChains: [][]*x509.Certificate{{foreign}}}
	bare := &tls.ConnectionState{}

	notVerified := outcome{task.AuthenticationRequired,
		"The client certificate was not verified. The operator of this " +
			"gateway must enable the verification of client certificates."}
	required := outcome{task.AuthenticationRequired, "A client certificate with an AIC is required. " +
		"If you have sent one, the operator of this gateway must enable the verification of client certificates."}
	notAnAIC := outcome{task.AuthenticationRequired, "The common name of the client certificate is not an AIC: " +
		"the AIC has 9 characters, neither the 32 of an AIC of v01.00 nor the dots of a later one."}

	for _, tt := range []struct {
		name  string
		mode  Mode
		state *tls.ConnectionState
		want  Peer
		err   outcome
	}{
		{"required, verified", Required, verified, peer, outcome{}},
		{"required, unverified", Required, unverified, Peer{}, notVerified},
		{"required, foreign", Required, stranger, Peer{}, notAnAIC},
		{"required, none", Required, bare, Peer{}, required},
		{"required, no TLS", Required, nil, Peer{}, required},
		{"zero mode, no TLS", "", nil, Peer{}, required},
		{"optional, verified", Optional, verified, peer, outcome{}},
		{"optional, unverified", Optional, unverified, Peer{}, notVerified},
		{"optional, foreign", Optional, stranger, Peer{}, notAnAIC},
		{"optional, none", Optional, bare, Peer{}, outcome{}},
		{"optional, no TLS", Optional, nil, Peer{}, outcome{}},
		{"off, verified", Off, verified, Peer{}, outcome{}},
		{"off, foreign", Off, stranger, Peer{}, outcome{}},
		{"off, no TLS", Off, nil, Peer{}, outcome{}},
	} {
		g := Guard{Mode: tt.mode}
		for range 2 { // the second time from memory
			got, err := g.Check(OfConnection(tt.state))
			if got.Verified() {
				if got.CommonName != tt.state.PeerCertificates[0].Subject.CommonName {
					t.Errorf("%s: the common name is %q", tt.name, got.CommonName)
				}
				if len(got.Chains) != 1 || got.Chains[0][0] != cert {
					t.Errorf("%s: the chains are %v", tt.name, got.Chains)
				}
				got.CommonName, got.Chains = "", nil
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(Peer{}),
				cmpopts.IgnoreFields(Peer{}, "Chains")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.name, diff)
			}
			if diff := cmp.Diff(tt.err, outcomeOf(err)); diff != "" {
				t.Errorf("%s: error (-want +got):\n%s", tt.name, diff)
			}
		}
	}
}

func TestGuardAdmit(t *testing.T) {
	peer := Peer{Proof: ByCertificate, Kind: AICKind, ID: aicV2}
	mismatch := outcome{task.AuthorizationFailed, "senderId is not the AIC of the client certificate."}
	denied := outcome{task.AuthorizationFailed, "This Leader is not allowed to call this Partner."}
	required := outcome{task.AuthenticationRequired, "A client certificate with an AIC is required. " +
		"If you have sent one, the operator of this gateway must enable the verification of client certificates."}
	only, notThis := []AIC{other, aicV2}, []AIC{other}
	long := strings.Repeat("x", 256)

	for _, tt := range []struct {
		name   string
		guard  Guard
		peer   Peer
		sender string
		want   string
		err    outcome
	}{
		{"same", Guard{}, peer, aicV2, aicV2, outcome{}},
		{"same, lower case and white space", Guard{}, peer, " " + strings.ToLower(aicV2) + "\n", aicV2, outcome{}},
		{"allowed", Guard{Allow: only}, peer, aicV2, aicV2, outcome{}},
		{"another", Guard{}, peer, other, "", mismatch},
		{"shorter", Guard{}, peer, aicV2[:20], "", mismatch},
		{"empty", Guard{}, peer, "", "", mismatch},
		{"not allowed", Guard{Allow: notThis}, peer, aicV2, "", denied},
		{"no certificate", Guard{}, Peer{}, aicV2, "", required},
		{"optional, same", Guard{Mode: Optional}, peer, aicV2, aicV2, outcome{}},
		{"optional, another", Guard{Mode: Optional}, peer, other, "", mismatch},
		{"optional, no certificate claims an AIC", Guard{Mode: Optional}, Peer{}, aicV2, "unverified:" + aicV2, outcome{}},
		{"optional, no certificate, with a list", Guard{Mode: Optional, Allow: only}, Peer{}, aicV2, "", required},
		{"optional, no certificate, control character", Guard{Mode: Optional}, Peer{}, "a\x00b", "",
			outcome{task.InvalidParams, "senderId has a control character."}},
		{"off", Guard{Mode: Off}, Peer{}, "agent-leader-aic", "agent-leader-aic", outcome{}},
		{"off, longest", Guard{Mode: Off}, Peer{}, long, long, outcome{}},
		{"off, too long", Guard{Mode: Off}, Peer{}, long + "x", "",
			outcome{task.InvalidParams, "senderId has 257 bytes, and at most 256 are allowed."}},
		{"off, empty", Guard{Mode: Off}, Peer{}, "", "", outcome{task.InvalidParams, "senderId is empty."}},
		{"off, line feed", Guard{Mode: Off}, Peer{}, "a\nb", "", outcome{task.InvalidParams,
			"senderId has a control character."}},
		{"off, C1 control", Guard{Mode: Off}, Peer{}, "a\u0085b", "", outcome{task.InvalidParams,
			"senderId has a control character."}},
		{"off, the name of an AID", Guard{Mode: Off}, Peer{}, "aid:alice.aid.pub", "", outcome{task.InvalidParams,
			`senderId must not begin with "aid:", as the names of other callers do; use an AIC.`}},
		{"off, the name of the operator", Guard{Mode: Off}, Peer{}, "operator:console", "", outcome{task.InvalidParams,
			`senderId must not begin with "operator:", as the names of other callers do; use an AIC.`}},
		{"off, the name of a caller in mode optional", Guard{Mode: Off}, Peer{}, "unverified:" + aicV2, "",
			outcome{task.InvalidParams,
				`senderId must not begin with "unverified:", as the names of other callers do; use an AIC.`}},
		{"off, another colon", Guard{Mode: Off}, Peer{}, "urn:x", "urn:x", outcome{}},
		{"optional, the name of an AID", Guard{Mode: Optional}, Peer{}, "aid:alice.aid.pub",
			"unverified:aid:alice.aid.pub", outcome{}},
		{"off, allowed", Guard{Mode: Off, Allow: only}, Peer{}, strings.ToLower(aicV2), strings.ToLower(aicV2),
			outcome{}},
		{"off, not allowed", Guard{Mode: Off, Allow: notThis}, Peer{}, aicV2, "", denied},
	} {
		got, err := tt.guard.Admit(tt.peer, tt.sender)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(tt.err, outcomeOf(err)); diff != "" {
			t.Errorf("%s: error (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestGuardOwner(t *testing.T) {
	peer := Peer{Proof: ByCertificate, Kind: AICKind, ID: aicV2}
	for _, tt := range []struct {
		name  string
		guard Guard
		peer  Peer
		want  string
		kind  task.Kind
		fails bool
	}{
		{"required", Guard{}, peer, aicV2, 0, false},
		{"required, not allowed", Guard{Allow: []AIC{other}}, peer, "", task.AuthorizationFailed, true},
		{"required, no certificate", Guard{}, Peer{}, "", task.AuthenticationRequired, true},
		{"optional, no certificate", Guard{Mode: Optional}, Peer{}, "", task.AuthenticationRequired, true},
		{"off", Guard{Mode: Off}, Peer{}, "", 0, false},
	} {
		got, err := tt.guard.Owner(tt.peer)
		if (err != nil) != tt.fails || got != tt.want || tt.fails && task.KindOf(err) != tt.kind {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
}

// TestPeersWithoutAICs: a guard takes a peer as its front has proven it. Its id is matched as it is, never as an AIC,
// and names a Leader beyond the names of AICs.
func TestPeersWithoutAICs(t *testing.T) {
	for _, proof := range []Proof{ByToken, ByBroker} {
		peer, err := new(Guard).Check(Peer{Proof: proof, Kind: "aid", ID: "did:x"})
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			name, sender, want string
			guard              Guard
			fails              bool
		}{
			{"same", "did:x", "aid:did:x", Guard{}, false},
			{"another case", "DID:X", "", Guard{}, true},
			{"its name here", "aid:did:x", "", Guard{}, true},
			{"only AICs are on the list", "did:x", "", Guard{Allow: []AIC{other, "did:x"}}, true},
		} {
			got, err := tt.guard.Admit(peer, tt.sender)
			if got != tt.want || (err != nil) != tt.fails {
				t.Errorf("%s: %q, %v", tt.name, got, err)
			}
		}
		if got, err := new(Guard).Owner(peer); got != "aid:did:x" || err != nil {
			t.Errorf("as the owner: %q, %v", got, err)
		}
	}
	ended := Peer{Proof: ByToken, Kind: "aid", ID: "did:x", Expires: time.Now().Add(-time.Second)}
	want := outcome{task.AuthenticationRequired, "The bearer token has expired. Send one that is valid."}
	if _, err := new(Guard).Check(ended); outcomeOf(err) != want {
		t.Errorf("a token that has expired: %v", err)
	}
}

// TestPeersAreIsolated: two certificates in one slot of the memory are never taken for each other.
func TestPeersAreIsolated(t *testing.T) {
	certs := []*x509.Certificate{certificate(t, aicV1), certificate(t, aicV2), certificate(t, other)}
	want := []AIC{aicV1, aicV2, other}
	for _, cert := range certs { // the same tail sends all of them to one slot
		copy(cert.Raw[len(cert.Raw)-4:], "same")
	}
	var wg sync.WaitGroup
	for i, cert := range certs {
		wg.Go(func() {
			for range 1000 {
				if got, err := aicOf(cert); err != nil || got != want[i] {
					t.Errorf("peer %s, %v, want %s", got, err, want[i])
					return
				}
			}
		})
	}
	wg.Wait()
}

// A request costs no memory for its identity once its certificate was read, and a second connection with the
// same certificate finds it read.
func TestIdentityOfARequestAllocatesNothing(t *testing.T) {
	cert := certificate(t, aicV2, "acps://"+aicV2)
	again, err := x509.ParseCertificate(cert.Raw)
	if err != nil {
		t.Fatal(err)
	}
	g := &Guard{Allow: []AIC{other, aicV2}}
	sender := strings.ToLower(aicV2)
	if _, err := g.Check(OfConnection(connection(cert))); err != nil {
		t.Fatal(err)
	}
	for _, state := range []*tls.ConnectionState{connection(cert), connection(again)} {
		n := testing.AllocsPerRun(100, func() {
			peer, err := g.Check(OfConnection(state))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := g.Admit(peer, sender); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%v allocations a request", n)
		}
	}
}

func connection(cert *x509.Certificate) *tls.ConnectionState {
	return &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{cert}},
		PeerCertificates: []*x509.Certificate{cert}}
}

func BenchmarkIdentityOfARequest(b *testing.B) {
	cert := certificate(b, aicV2, "acps://"+aicV2)
	g, state := &Guard{Allow: []AIC{aicV2}}, connection(cert)
	b.ReportAllocs()
	for b.Loop() {
		peer, err := g.Check(OfConnection(state))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := g.Admit(peer, aicV2); err != nil {
			b.Fatal(err)
		}
	}
}

func TestParseMode(t *testing.T) {
	for _, want := range []Mode{Required, Optional, Off} {
		if got, err := ParseMode(string(want)); err != nil || got != want {
			t.Errorf("%s: %s, %v", want, got, err)
		}
	}
	for _, s := range []string{"", "Required", "on"} {
		if got, err := ParseMode(s); err == nil {
			t.Errorf("%q was taken as %s", s, got)
		}
	}
}

// TestGuardAnonymousOperator: the operator is one Leader in every mode, and on no list.
func TestGuardAnonymousOperator(t *testing.T) {
	for _, mode := range []Mode{Required, Optional, Off} {
		g := Guard{Mode: mode, Allow: []AIC{other}}
		peer, err := g.Check(Peer{Proof: ByHost, Kind: OperatorKind, ID: "console", Login: true})
		leader := ""
		if err == nil {
			leader, err = g.Anonymous(peer)
		}
		if leader != "operator:console" || err != nil {
			t.Errorf("in mode %s, the operator is the Leader %q: %v", mode, leader, err)
		}
	}
}

// TestUnproven: a caller without a proof learns the credentials to send.
func TestUnproven(t *testing.T) {
	const certificate = "A client certificate with an AIC is required. If you have sent one, " +
		"the operator of this gateway must enable the verification of client certificates."
	for name, tc := range map[string]struct {
		proofs map[string][]Proof
		want   string
	}{
		"a certificate": {nil, certificate},
		"of a proxy":    {map[string][]Proof{"a2a": {ByProxy}}, certificate},
		"a key":         {map[string][]Proof{"a2a": {ByKey}}, "Prove who you are. Send a key."},
		"one of all": {map[string][]Proof{"a": {ByKey}, "b": {ByCertificate, ByProxy, ByToken}},
			"Prove who you are. Send a bearer token or a client certificate with an AIC or a key."},
	} {
		g := &Guard{Mode: Required, Proofs: tc.proofs}
		_, err := g.Check(Peer{})
		if e, ok := errors.AsType[*task.Error](err); !ok || e.Kind != task.AuthenticationRequired || e.Detail != tc.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCheckIn: a caller is asked for the credentials of its own dialect, and may prove its identity by nothing else.
func TestCheckIn(t *testing.T) {
	const certificate = "A client certificate with an AIC is required. If you have sent one, " +
		"the operator of this gateway must enable the verification of client certificates."
	required := func(detail string) outcome { return outcome{task.AuthenticationRequired, detail} }
	by := func(proof Proof) Peer { return Peer{Proof: proof, Kind: KeyKind, ID: "x"} }
	refused := Refused(refuse("No."))
	for name, tt := range map[string]struct {
		mode    Mode
		dialect string
		peer    Peer
		want    outcome
	}{
		"nothing in AIP": {Required, "aip", Peer{}, required(certificate)},
		"nothing in A2A": {"", "a2a", Peer{}, required("Prove who you are. Send a key.")},
		"nothing in another": {Required, "x", Peer{},
			required("Prove who you are. Send a client certificate with an AIC or a key.")},
		"nothing, where it may":         {Optional, "aip", Peer{}, outcome{}},
		"a wrong one":                   {Required, "aip", refused, required("No.")},
		"a wrong one, where none needs": {Optional, "aip", refused, required("No.")},
		"a key in A2A":                  {Required, "a2a", by(ByKey), outcome{}},
		"a key in AIP":                  {Required, "aip", by(ByKey), required(certificate)},
		"a key in AIP, where none need": {Optional, "aip", by(ByKey), required(certificate)},
		"a key in another":              {Required, "x", by(ByKey), outcome{}},
		"by a broker":                   {Required, "aip", by(ByBroker), outcome{}},
		"by a login": {Required, "aip", Peer{Proof: ByToken, Kind: AIDKind, ID: "a.b", Login: true},
			outcome{}},
		"a key where nothing is judged": {Off, "aip", by(ByKey), outcome{}},
	} {
		g := &Guard{Mode: tt.mode, Proofs: map[string][]Proof{"aip": {ByCertificate}, "a2a": {ByKey}}}
		if _, err := g.CheckIn(tt.dialect, tt.peer); outcomeOf(err) != tt.want {
			t.Errorf("%s: %v, want %v", name, outcomeOf(err), tt.want)
		}
	}
}
