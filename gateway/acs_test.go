// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
)

// keptDates are Dates in memory.
type keptDates struct {
	digest  string
	changed time.Time
	asked   int
	fail    error
}

func (d *keptDates) Date(_ context.Context, _, digest string, changed time.Time) (time.Time, error) {
	d.asked++
	if d.fail != nil {
		return changed, d.fail
	}
	if d.digest != digest {
		d.digest, d.changed = digest, changed
	}
	return d.changed, nil
}

// acsOf opens a Partner, and returns a function for fetching its ACS at a URL.
func acsOf(t *testing.T, change func(*gateway.Config)) (*gateway.Gateway, func(path, base string) gjson.Result) {
	t.Helper()
	g := newGateway(t, func(c *gateway.Config) {
		c.AIC, c.PublicURL = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4", "https://agent.example/one"
		c.Guard = &identity.Guard{Mode: identity.Required}
		c.Cards.Organization = "O"
		change(c)
	})
	return g, func(path, base string) gjson.Result {
		t.Helper()
		body, err := g.Document(path)(t.Context(), base, "")
		if err != nil {
			t.Fatal(err)
		}
		return gjson.ParseBytes(body)
	}
}

// TestACSKeepsItsTime: lastModifiedTime changes with the content and with nothing else: not when the gateway starts
// again, and not with the host used by a caller.
func TestACSKeepsItsTime(t *testing.T) {
	first := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	var kept keptDates
	_, fetch := acsOf(t, func(c *gateway.Config) { c.Cards.Dates, c.PublicURL = &kept, "" })
	fetch(".well-known/acs.json", "https://a.example")
	kept.changed = first // as if it had been then
	for range 2 {
		_, fetch = acsOf(t, func(c *gateway.Config) { c.Cards.Dates, c.PublicURL = &kept, "" })
		kept.asked = 0
		for _, path := range []string{".well-known/acs.json", "agent_spec.json"} {
			for _, base := range []string{"https://a.example", "https://b.example"} {
				doc := fetch(path, base)
				if got := doc.Get("lastModifiedTime").Str; got != "2025-01-01T08:00:00+08:00" {
					t.Errorf("%s at %s: it has changed at %s", path, base, got)
				}
				if got := doc.Get("endPoints.0.url").Str; got != base+"/rpc" || doc.Get("certificate").Exists() {
					t.Errorf("%s at %s: the caller's host is taken for that of the Partner: %s", path, base, doc.Raw)
				}
			}
		}
		if kept.asked != 1 {
			t.Errorf("it was looked up %d times", kept.asked)
		}
	}
	_, fetch = acsOf(t, func(c *gateway.Config) { c.Cards.Dates, c.Cards.Department, c.PublicURL = &kept, "D", "" })
	if got := fetch(".well-known/acs.json", "https://a.example").Get("lastModifiedTime").Time(); !got.After(first) {
		t.Errorf("another content has changed at %s", got)
	}
	kept.fail = errors.New("no storage")
	_, fetch = acsOf(t, func(c *gateway.Config) { c.Cards.Dates = &kept })
	for range 2 {
		if got := fetch(".well-known/acs.json", "https://a.example").Get("lastModifiedTime").Time(); !got.After(first) {
			t.Errorf("without a storage, it has changed at %s", got)
		}
	}
}

// TestACSIsCompared: a registry's possible objections, and differences from a registered ACS, are logged once for each
// content, also without a request for the ACS.
func TestACSIsCompared(t *testing.T) {
	var logged strings.Builder
	registered := ""
	change := func(c *gateway.Config) {
		c.Log = slog.New(slog.NewTextHandler(&logged, nil))
		c.Cards.Registered = func(context.Context) ([]byte, error) { return []byte(registered), nil }
	}
	g, fetch := acsOf(t, change)
	registered = strings.Replace(fetch(".well-known/acs.json", "https://agent.example/one").Raw, `"active":true`,
		`"active":false`, 1)
	for name, tc := range map[string]struct {
		old, new         string // the change in the registered ACS
		organization     string
		differs, refused string
	}{
		"the same":         {"", "", "O", "", ""},
		"another skill":    {`"skills":[]`, `"skills":[{"id":"x"}]`, "O", "skills[0]", ""},
		"no organization":  {"", "", "", "provider.organization", "provider.organization: it is missing"},
		"nothing to read":  {registered, "", "O", "it is no JSON", ""},
		"the mount point":  {`/one/rpc"`, `/one"`, "O", "its mount point as its endpoint", ""},
		"it cannot be had": {registered, "fail", "O", "the file is gone", ""},
	} {
		t.Run(name, func(t *testing.T) {
			logged.Reset()
			g, fetch = acsOf(t, func(c *gateway.Config) {
				change(c)
				c.Cards.Organization = tc.organization
				c.Cards.Registered = func(context.Context) ([]byte, error) {
					if tc.new == "fail" {
						return nil, errors.New("the file is gone")
					}
					return []byte(strings.Replace(registered, tc.old, tc.new, 1)), nil
				}
			})
			g.CheckACS(t.Context())
			fetch(".well-known/acs.json", "https://agent.example/one")
			text := logged.String()
			n := 0
			for _, want := range []string{tc.differs, tc.refused} {
				if want != "" {
					n++
				}
				if !strings.Contains(text, want) {
					t.Errorf("it does not log %q: %s", want, text)
				}
			}
			if got := strings.Count(text, "level=WARN"); got != n {
				t.Errorf("it warns %d times, want %d: %s", got, n, text)
			}
			mistakes, compared, err := g.ExamineACS(t.Context())
			atMount := strings.Contains(tc.differs, "mount point")
			if diff := cmp.Diff([]bool{tc.refused != "", strings.Contains(tc.differs, " ") && !atMount, atMount},
				[]bool{len(mistakes) > 0, err != nil, compared.AtMount}); diff != "" {
				t.Errorf("mistakes %v, differences %v, error %v (-want +got):\n%s", mistakes, compared, err, diff)
			}
		})
	}
}
