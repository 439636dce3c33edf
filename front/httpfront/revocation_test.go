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
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
)

// revoked is a Revocation of one certificate, from some time on.
type revoked struct {
	cert atomic.Pointer[x509.Certificate]
}

func (r *revoked) Check(_ context.Context, chains [][]*x509.Certificate, _ []byte) error {
	if r.cert.Load() != chains[0][0] {
		return nil
	}
	return task.Errorf(task.AuthenticationRequired, "The client certificate was revoked.")
}

func (*revoked) Called(context.Context, string, [][]*x509.Certificate, bool) error { return nil }

// TestStreamEndsWhenItsCertificateIsRevoked revokes a certificate of two while their streams are open.
func TestStreamEndsWhenItsCertificateIsRevoked(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const first, second = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4", "1.2.156.3088.1.1.34C2.478BDF.3GF547.0GGS"
		list := new(revoked)
		h := openSite(t, func(h *setup) {
			h.Guard, h.Partner.Agent, h.front.Heartbeat = new(identity.Guard), busyAgent{}, 20*time.Second
			h.Partner.Terms.Response, h.Revocation = 40*time.Second, list
		})
		certs := make(map[string]*x509.Certificate)
		for _, aic := range []string{first, second} {
			certs[aic] = &x509.Certificate{
				Raw: []byte(aic), NotAfter: time.Now().Add(time.Hour), Subject: pkix.Name{CommonName: aic},
			}
		}
		post := func(aic, path, method, command string) string {
			body := strings.Replace(message(method, command, "t1", "hello"), `"senderId":"leader"`,
				`"senderId":"`+aic+`"`, 1)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
			r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{certs[aic]}}}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Body.String()
		}
		type end struct {
			after time.Duration
			frame string
		}
		begun := time.Now()
		open := func(aic string) <-chan end {
			ended := make(chan end, 1)
			go func() {
				got := strings.TrimSpace(post(aic, "/stream", "stream", "start"))
				ended <- end{time.Since(begun), got[strings.LastIndex(got, "\n\n")+2:]}
			}()
			return ended
		}
		one, other := open(first), open(second)
		bubble.Pass(5 * time.Second)
		h.setup.Process.Recheck(t.Context(), list.Check)
		bubble.Pass(5 * time.Second)
		list.cert.Store(certs[first])
		h.setup.Process.Recheck(t.Context(), list.Check)
		if got := <-one; got.after != 10*time.Second || !strings.HasPrefix(got.frame, "data: ") ||
			!strings.Contains(got.frame, "-32008") || !strings.Contains(got.frame, "was revoked") {
			t.Errorf("the stream ends after %s with %q, want one frame with error -32008", got.after, got.frame)
		}
		for _, command := range []string{"get", "cancel"} {
			if got := post(first, "/rpc", "rpc", command); !strings.Contains(got, "-32008") {
				t.Errorf("%s over the same connection: %s", command, got)
			}
		}
		if got := post(second, "/rpc", "rpc", "get"); strings.Contains(got, "-32008") {
			t.Errorf("a call of the other Leader: %s", got)
		}
		if got := <-other; got.after != time.Hour || !strings.Contains(got.frame, "has expired") {
			t.Errorf("the other Leader's stream ends after %s with %q", got.after, got.frame)
		}
		if n := h.streams(); n != 0 {
			t.Errorf("%d streams are still counted", n)
		}
	})
}
