// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// TestConfiguredCard: a search takes the card from its configured place, and sends another host none of the credentials
// for the agent.
func TestConfiguredCard(t *testing.T) {
	var told http.Header
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told = r.Header
		io.WriteString(w, strings.ReplaceAll(card03, "HOST", r.Host))
	}))
	defer other.Close()
	p := &peer{rpc: at1("/invoke", speaks03)}
	srv := httptest.NewServer(p)
	defer srv.Close()
	for name, config := range map[string]Config{
		"by a URL":  {CardURL: other.URL + "/any/card?x=1"},
		"by a file": {ReadCard: func() ([]byte, error) { return []byte(card03), nil }},
	} {
		p.log, told = nil, nil
		config.URL, config.Finder = srv.URL, a2a.Finder()
		config.Header = http.Header{"Authorization": {"Bearer x"}, "Host": {"agent.example"}}
		found, err := Discover(t.Context(), config)
		if err != nil || found.Dialect != "a2a/0.3" || found.URL != srv.URL+"/invoke" || len(p.log) != 1 {
			t.Errorf("%s: %+v, %v, after %q", name, found, err, p.log)
		}
		if told.Get("Authorization") != "" || told.Get("User-Agent") == "" != (told == nil) {
			t.Errorf("%s: the other host was told %v", name, told)
		}
	}
	card, err := FetchCard(t.Context(), Config{URL: srv.URL, Finder: a2a.Finder(),
		ReadCard: func() ([]byte, error) { return nil, errors.New("no such file") }})
	if upstream.ReasonOf(err) != upstream.CardMissing || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a file that is missing: %v, %v", card, err)
	}
}
