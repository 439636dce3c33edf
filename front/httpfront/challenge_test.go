// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/task"
)

// faulty makes a front with the header Fault for the fault of a request's credentials.
func faulty(h *setup) {
	h.Guard = &identity.Guard{Mode: identity.Required}
	h.front.Challenges = make(map[string]Challenges)
	callers, _ := gateway.Callers(gateway.CallerDialects(), false, nil) // it knows the names
	for _, caller := range callers {
		h.front.Challenges[caller.Name()] = Challenges{Bearer: true, KeyHeader: "X-Key", Certificate: true}
	}
	h.front.Authenticate = func(r *http.Request) (identity.Peer, error) {
		cause := map[string]error{
			"malformed": identity.ErrMalformed, "invalid": identity.ErrInvalid,
			"scope": &identity.ScopeError{Needed: []string{"aip"}},
		}[r.Header.Get("Fault")]
		if cause == nil {
			return identity.Peer{}, nil
		}
		return identity.Peer{}, task.Errorf(task.AuthenticationRequired, "No.").WithCause(cause)
	}
}

// challenged are the statuses and challenges for each fault.
var challenged = map[string]struct {
	status int
	bearer string
}{
	"":          {401, `Bearer`},
	"invalid":   {401, `Bearer error="invalid_token"`},
	"malformed": {400, `Bearer error="invalid_request"`},
	"scope":     {403, `Bearer error="insufficient_scope", scope="aip"`},
}

// TestChallenges calls in every dialect of HTTP without an accepted credential.
func TestChallenges(t *testing.T) {
	g := open(t, everyCaller, faulty)
	for name, call := range map[string]struct {
		path, version, body string
		always200           bool
		says                string
	}{
		"aip": {"", "", message("rpc", "start", "t", "x"), true, `"code":-32008`},
		"a2a/1.0": {"", "1.0", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":` +
			`{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}}`, false, `"code":-32051`},
		"a2a/1.0-rest": {"/message:send", "1.0", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}`,
			false, `"UNAUTHENTICATED"`},
		"a2a/0.3": {"", "", `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":` +
			`{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"x"}]}}}`, false, `"error"`},
		"a2a/legacy": {"", "", `{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{"id":"t","message":` +
			`{"role":"user","parts":[{"type":"text","text":"x"}]}}}`, false, `"error"`},
	} {
		for fault, want := range challenged {
			t.Run(name+" "+fault, func(t *testing.T) {
				path := "/agents/one" + call.path
				if call.version != "" {
					path += "?A2A-Version=" + call.version
				}
				res, body := g.request("POST", path, "Fault", fault, call.body)
				status, fields := want.status, []string{want.bearer, `AIP-Key header="X-Key"`, "AIP-Certificate"}
				if call.always200 {
					status, fields = 200, nil
				}
				if res.StatusCode != status || !strings.Contains(body, call.says) {
					t.Errorf("got %d and %s, want %d and %s", res.StatusCode, body, status, call.says)
				}
				if diff := cmp.Diff(fields, res.Header["Www-Authenticate"]); diff != "" {
					t.Errorf("challenges (-want +got):\n%s", diff)
				}
			})
		}
	}
	if n := g.requests.Load(); n != 0 {
		t.Errorf("the agent has got %d requests", n)
	}
}

// TestChallengesOfADialect: a caller is asked for the credentials of its dialect, whatever others at the same path
// take.
func TestChallengesOfADialect(t *testing.T) {
	g := open(t, everyCaller, func(h *setup) {
		h.Guard = &identity.Guard{Mode: identity.Required}
		h.front.Challenges = map[string]Challenges{"a2a/0.3": {Bearer: true}, "a2a/1.0": {Certificate: true},
			"a2a/legacy": {KeyHeader: "X-Key"}}
	})
	for body, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER",` +
			`"parts":[{"text":"x"}]}}}`: "AIP-Certificate",
		`{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message","messageId":"m",` +
			`"role":"user","parts":[{"kind":"text","text":"x"}]}}}`: "Bearer",
		`{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{"id":"t","message":{"role":"user",` +
			`"parts":[{"type":"text","text":"x"}]}}}`: `AIP-Key header="X-Key"`,
	} {
		path := "/agents/one"
		if strings.Contains(body, "SendMessage") {
			path += "?A2A-Version=1.0"
		}
		res, _ := g.post(path, body)
		if diff := cmp.Diff([]string{want}, res.Header["Www-Authenticate"]); diff != "" || res.StatusCode != 401 {
			t.Errorf("%s: status %d, challenges (-want +got):\n%s", body, res.StatusCode, diff)
		}
	}
}

// TestChallengesGRPC: over gRPC, the challenges are metadata.
func TestChallengesGRPC(t *testing.T) {
	g := open(t, overGRPC, faulty)
	for fault, want := range challenged {
		ctx := t.Context()
		if fault != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "fault", fault)
		}
		var header, trailer metadata.MD
		_, err := g.grpcClient().SendMessage(ctx, says("x"), grpc.Header(&header), grpc.Trailer(&trailer))
		if code := status.Code(err); code != codes.Unauthenticated {
			t.Errorf("%q: got %v", fault, err)
		}
		got := append(header["www-authenticate"], trailer["www-authenticate"]...)
		if diff := cmp.Diff([]string{want.bearer, `AIP-Key header="X-Key"`, "AIP-Certificate"}, got); diff != "" {
			t.Errorf("%q: challenges (-want +got):\n%s", fault, diff)
		}
	}
}

// TestDialectsAcceptProofs: the holder of a key is admitted in the dialects with keys, and in no other.
func TestDialectsAcceptProofs(t *testing.T) {
	g := open(t, everyCaller, func(h *setup) {
		h.Guard = &identity.Guard{Mode: identity.Required, Proofs: map[string][]identity.Proof{
			"aip": {identity.ByCertificate}, "a2a/0.3": {identity.ByKey},
		}}
		h.front.Authenticate = func(*http.Request) (identity.Peer, error) {
			return identity.Peer{Proof: identity.ByKey, Kind: identity.KeyKind, ID: "ci"}, nil
		}
	})
	_, body := g.post("/agents/one", strings.Replace(message("rpc", "start", "t", "x"), `"leader","sessionId"`,
		`"key:ci","sessionId"`, 1))
	if !strings.Contains(body, `"code":-32008`) {
		t.Errorf("aip: got %s", body)
	}
	res, body := g.post("/agents/one", `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":`+
		`{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"x"}]}}}`)
	if res.StatusCode != 200 || strings.Contains(body, `"error"`) {
		t.Errorf("a2a/0.3: got %d %s", res.StatusCode, body)
	}
}
