// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/aip-gateway/aip-gateway/acps/agentca"
	"github.com/aip-gateway/aip-gateway/acps/agentca/catest"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
)

// TestChallengeFile obtains the certificate of an agent of ACPs v01.00 from an authority that gets the file at
// <ca-challenge-url>/<AIC>/<token> over HTTP, from another gateway that shares the storage. Nothing else is there.
func TestChallengeFile(t *testing.T) {
	const aic = "10001000011K912345E789ABCDEF2353"
	dir := t.TempDir()
	shown := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := (&Challenge{storage: &certmagic.FileStorage{Path: dir}}).ServeHTTP(w, r, nil); err != nil {
			http.Error(w, "", http.StatusNotFound)
		}
	}))
	t.Cleanup(shown.Close)
	get := func(path string) (int, []byte) {
		res, err := http.Get(shown.URL + path)
		if err != nil {
			return 0, nil
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		return res.StatusCode, body
	}
	ca := catest.New(t)
	ca.Serve(t)
	ca.Add(aic, catest.Agent{Lifetime: 30 * 24 * time.Hour})
	ca.AskForFiles(func(aic, token string) ([]byte, error) {
		for _, other := range []string{"/" + aic + "/" + token + "x", "/" + aic + "/..", "/x/" + token, "/" + token} {
			if status, _ := get("/ca-challenge" + other); status != http.StatusNotFound {
				t.Errorf("%s is answered with %d", other, status)
			}
		}
		status, body := get("/ca-challenge/" + aic + "/" + token)
		if status != http.StatusOK {
			return nil, fmt.Errorf("status %d", status)
		}
		return body, nil
	})
	storage := &certmagic.FileStorage{Path: dir}
	k := agentca.New(agentca.Config{AIC: aic, Storage: storage, Challenges: storage,
		Client: &agentca.Client{Directory: ca.Directory(), HTTP: http.DefaultClient}, Log: slog.New(slog.DiscardHandler)})
	k.Start()
	t.Cleanup(k.Close)
	asynctest.Eventually(t, "the certificate", func() bool { return k.Certificate(agentca.ServerAuth) != nil })
	if name := k.Certificate(agentca.ClientAuth).Leaf.Subject.CommonName; name != aic+".acps.pub" {
		t.Errorf("the certificate is of %s", name)
	}
}
