// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

const tokenLeader = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"

// tokenSays is an AAC with one accepted token, "good", and its expiry. It refuses others.
type tokenSays struct {
	expires time.Time
	asked   *[]string
}

func (a tokenSays) Check(_ context.Context, c *policy.Call, authorization []string) (*identity.Claims, error) {
	*a.asked = append(*a.asked, "token of "+c.Leader)
	if strings.Join(authorization, " ") != "Bearer good" {
		return nil, task.Errorf(task.AccessTokenInvalid, "The access token is not accepted.")
	}
	return &identity.Claims{Subject: "somebody", Expires: a.expires}, nil
}

// policySays is a Policy denying a get.
type policySays struct{ asked *[]string }

func (p policySays) Decide(_ context.Context, c *policy.Call, _ *policy.Use) error {
	*p.asked = append(*p.asked, "policy for "+c.Peer.Claims.Subject)
	if c.Command == "get" {
		return policy.Denied(nil)
	}
	return nil
}

func (policySays) Denies(*policy.Call) error { return nil }

// postAs posts a command of the Leader of a certificate, with a header Authorization.
func postAs(t *testing.T, h *site, cert *x509.Certificate, method, command, sender, authorization string) string {
	t.Helper()
	body := strings.Replace(message(method, command, "t1", "hello"), `"senderId":"leader"`, `"senderId":"`+sender+`"`, 1)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/"+method, strings.NewReader(body))
	r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{cert}}}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Body.String()
}

// TestOrderOfAAC: the senderId is looked at before the token, the token before the policy, and the policy before the
// task (AAC v02.02 §11.3).
func TestOrderOfAAC(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var asked []string
		h := openSite(t, func(h *setup) {
			h.Guard, h.Partner.Agent = new(identity.Guard), busyAgent{}
			h.AAC, h.Policy = tokenSays{time.Now().Add(time.Hour), &asked}, policySays{&asked}
		})
		cert := &x509.Certificate{NotAfter: time.Now().Add(24 * time.Hour), Subject: pkix.Name{CommonName: tokenLeader}}
		token, said := "token of "+tokenLeader, "policy for somebody"
		for _, tt := range []struct {
			name, command, sender, authorization, want string
			asked                                      []string
		}{
			{"another sender, a wrong token, and a denied command", "get", "10001000011K94ZH3VDXLP4S5EB63614", "Bearer bad",
				"-32009", nil},
			{"a wrong token, and a denied command", "get", tokenLeader, "Bearer bad", "-32010", []string{token}},
			{"two tokens", "get", tokenLeader, "Bearer good Bearer good", "-32010", []string{token}},
			{"a denied command of a task that does not exist", "get", tokenLeader, "Bearer good", "-32009",
				[]string{token, said}},
			{"all is well", "start", tokenLeader, "Bearer good", `"working"`, []string{token, said}},
		} {
			asked = nil
			got := postAs(t, h, cert, "rpc", tt.command, tt.sender, tt.authorization)
			if diff := cmp.Diff(tt.asked, asked); diff != "" || !strings.Contains(got, tt.want) {
				t.Errorf("%s: %s, want %s; asked (-want +got):\n%s", tt.name, got, tt.want, diff)
			}
		}
	})
}

// TestStreamEndsWithItsToken: a stream ends when its token expires, before its certificate does; the task goes on, and
// a reconnecting caller brings a token again.
func TestStreamEndsWithItsToken(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var asked []string
		expires := time.Now().Add(90 * time.Second)
		h := openSite(t, func(h *setup) {
			h.Guard, h.Partner.Agent, h.front.Heartbeat = new(identity.Guard), busyAgent{}, 20*time.Second
			h.AAC = tokenSays{expires, &asked}
		})
		cert := &x509.Certificate{NotAfter: expires.Add(time.Second), Subject: pkix.Name{CommonName: tokenLeader}}
		got := postAs(t, h, cert, "stream", "start", tokenLeader, "Bearer good")
		if at := time.Now(); !at.Equal(expires) {
			t.Errorf("the stream ended at %s, want %s", at, expires)
		}
		last := strings.TrimSpace(got)
		last = strings.TrimLeft(last[strings.LastIndex(last, "\n\n")+2:], ":\n") // without comments
		if !strings.Contains(got, `"working"`) || !strings.HasPrefix(last, "data: ") || !strings.Contains(last, "-32010") ||
			!strings.Contains(last, "Invalid access token") {
			t.Errorf("the stream is %s, want one frame with error -32010 at its end", got)
		}
		if got := postAs(t, h, cert, "stream", "re-stream", tokenLeader, ""); !strings.Contains(got, "-32010") {
			t.Errorf("it is resumed without a token: %s", got)
		}
		if got := postAs(t, h, cert, "rpc", "get", tokenLeader, "Bearer good"); !strings.Contains(got, `"working"`) {
			t.Errorf("the task: %s", got)
		}
		if n := h.streams(); n != 0 {
			t.Errorf("%d streams are still counted", n)
		}
	})
}
