// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/acps/agentca"
	"github.com/aip-gateway/aip-gateway/acps/agentca/catest"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf/conftest"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/pemtext"
)

// readCertificates reads the option as in a Caddyfile, and checks it.
func readCertificates(text string) (c *Certificates, err error) {
	p := conftest.Parser(text)
	if CertificatesOption(p, &c)(); p.Failed() != nil {
		return nil, p.Failed()
	}
	return c, c.Provision(nil, nil)
}

// TestCertificatesOption: what the option reads. AICs are kept in one form.
func TestCertificatesOption(t *testing.T) {
	const url = "https://ca.example/acps-atr-v2/acme/directory"
	for text, want := range map[string]*Certificates{
		"certificates https://ca.example": {Directory: "https://ca.example"},
		"certificates " + url + " {\neab a b\ncontact me@a.example\npartners 10001000011k912345e789abcdef2353\n" +
			"trust_bundle c.pem\n}": {Directory: url, EAB: []string{"a", "b"}, Contact: []string{"me@a.example"},
			Partners: []string{"10001000011K912345E789ABCDEF2353"}, TrustBundle: "c.pem"},
	} {
		got, err := readCertificates(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		got.Close()
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Certificates{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// TestCertificatesOptionMistakes: what is said about each mistake in a Caddyfile, and about the URL.
func TestCertificatesOptionMistakes(t *testing.T) {
	with := func(options string) string { return "certificates https://ca.example {\n" + options + "\n}" }
	conftest.Refuses(t, map[string]string{
		"certificates":            "certificates needs exactly one value, at Testfile:1",
		"certificates ca.example": `certificates: "ca.example" is no https URL`,
		"certificates http://ca.example": `certificates: "http://ca.example" must be https, because others on the way ` +
			"could read and change what is sent",
		with("partner a"): `there is no "partner" in certificates; did you mean "partners"?, at Testfile:2`,
		with("eab"):       "eab needs at least one value, at Testfile:2",
	}, func(text string) error {
		_, err := readCertificates(text)
		return err
	})
}

// authority is one that is down where it says so.
type authority struct {
	*catest.CA
	down atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (a *authority) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.down.Load() {
		return nil, os.ErrDeadlineExceeded
	}
	return a.CA.RoundTrip(r)
}

// follows returns certificates with a file for the roots of an authority.
func follows(t *testing.T, from *authority) *Certificates {
	t.Helper()
	return &Certificates{TrustBundle: filepath.Join(t.TempDir(), "roots.pem"),
		client: &agentca.Client{Directory: from.Directory(), HTTP: &http.Client{Transport: from}}}
}

// TestBundle: the roots are in the file at once, as others may read it, and it is written again only if they change.
func TestBundle(t *testing.T) {
	from := &authority{CA: catest.New(t)}
	c := follows(t, from)
	for _, want := range []bool{true, false} {
		if changed, err := c.writeBundle(t.Context()); changed != want || err != nil {
			t.Errorf("the file is written: %t, %v, want %t", changed, err, want)
		}
	}
	text, err := os.ReadFile(c.TrustBundle)
	if err != nil {
		t.Fatal(err)
	}
	roots, err := pemtext.Certificates(text, 10)
	if err != nil || !roots[0].Equal(from.Root()) && !roots[len(roots)-1].Equal(from.Root()) {
		t.Errorf("the file has %d certificates, %v", len(roots), err)
	}
	if is, err := os.Stat(c.TrustBundle); err != nil || is.Mode() != 0o644 {
		t.Errorf("the file is %v, %v", is.Mode(), err)
	}
	if err := os.WriteFile(c.TrustBundle, []byte("others"), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, err := c.writeBundle(t.Context()); !changed || err != nil {
		t.Errorf("other roots are kept: %t, %v", !changed, err)
	}
	// A file that cannot be replaced leaves nothing behind.
	dir := t.TempDir()
	c.TrustBundle = filepath.Join(dir, "roots.pem")
	if err := os.MkdirAll(filepath.Join(c.TrustBundle, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	if changed, err := c.writeBundle(t.Context()); changed || err == nil {
		t.Errorf("a directory is replaced: %t, %v", changed, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("beside the directory are %v, %v", left, err)
	}
	c.TrustBundle = "{env.NO_SUCH_FILE}"
	const want = "the name of a file has a placeholder without a value: {env.NO_SUCH_FILE}"
	if _, err := c.writeBundle(t.Context()); err == nil || err.Error() != want {
		t.Errorf("without a name: %v, want %s", err, want)
	}
}

// TestFollowBundle: while the authority is down, the file stays, which is said once. It is asked again soon then, and
// else each hour.
func TestFollowBundle(t *testing.T) {
	from := &authority{CA: catest.New(t)}
	c := follows(t, from)
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		var log asynctest.Buffer
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.followBundle(ctx, slog.New(slog.NewTextHandler(&log, nil)))
		}()
		defer func() { end(); <-done }()
		const old = "those before"
		for _, step := range []struct {
			after          time.Duration
			down, renewed  bool // the authority, and the file since the last step
			changes, warns int
		}{
			{0, false, true, 1, 0},
			{bundleEvery - time.Second, false, false, 1, 0},
			{time.Second, true, true, 2, 0},
			{bundleEvery, true, false, 2, 1},
			{bundleRetry, false, false, 2, 1},
			{bundleRetry, true, true, 3, 1},
			{bundleEvery, true, false, 3, 2},
		} {
			time.Sleep(step.after)
			synctest.Wait()
			text, err := os.ReadFile(c.TrustBundle)
			if renewed := err == nil && string(text) != old; renewed != step.renewed {
				t.Errorf("after %s, the file is renewed: %t, %v", step.after, renewed, err)
			}
			changes, warns := strings.Count(log.String(), "have changed"), strings.Count(log.String(), "cannot be had")
			if changes != step.changes || warns != step.warns {
				t.Errorf("after %s, the log is\n%s", step.after, log.String())
			}
			from.down.Store(step.down) // at the next time
			if err := os.WriteFile(c.TrustBundle, []byte(old), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	})
}
