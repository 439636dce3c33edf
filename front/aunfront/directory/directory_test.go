// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/acps/catalog"
	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/translate"
)

var newYear = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// of returns a directory of a catalogue of its own.
func of(agents ...catalog.Agent) *Directory {
	d := New(new(catalog.Catalog))
	d.set(nil, agents...)
	return d
}

// set replaces the agents of the directory, as a reload does.
func (d *Directory) set(own *aun.Identity, agents ...catalog.Agent) {
	d.catalog.Set(agents)
	d.Set(own)
}

// fixed returns an agent with an unchanging card.
func fixed(aid string, card *translate.Card) catalog.Agent {
	return catalog.Agent{Name: aid, AID: aid, Card: func(context.Context) (*translate.Card, time.Time, error) {
		return card, newYear, nil
	}}
}

var (
	reviewer = fixed("reviewer.aid.pub", &translate.Card{
		Name: "Reviewer", Description: "Reviews code for engineers",
		Skills: []translate.Skill{{Name: "Pull requests", Tags: []string{"coding", "review"}}},
	})
	travel = fixed("travel.aid.pub", &translate.Card{
		Name: "Travel", Description: "Plans trips, and reviews hotels",
		Skills: []translate.Skill{{Name: "Plan a trip", Tags: []string{"travel"}}},
	})
)

// ask returns the result of a method, or the code of its error, as JSON.
func ask(t *testing.T, d *Directory, method, params string) string {
	t.Helper()
	result, ok, err := d.Search(t.Context(), method, gjson.Parse(params))
	var refused *aun.Error
	switch {
	case !ok:
		return "no such method"
	case errors.As(err, &refused):
		return fmt.Sprint(refused.Code)
	case err != nil:
		t.Fatal(err)
	}
	if !json.Valid(result) {
		t.Fatalf("the result is no JSON: %s", result)
	}
	return strings.ReplaceAll(string(result), d.epoch, "EPOCH")
}

func TestQuery(t *testing.T) {
	d := of(travel, reviewer)
	found := func(params string) string {
		return strings.Join(strings.Fields(gjson.Get(ask(t, d, "search.query", params), "items.#.aid").String()), "")
	}
	for params, want := range map[string]string{
		`{}`:                                `["reviewer.aid.pub","travel.aid.pub"]`,
		`{"q":"review"}`:                    `["reviewer.aid.pub","travel.aid.pub"]`,
		`{"q":"TRIPS"}`:                     `["travel.aid.pub"]`,
		`{"q":"hotels travel"}`:             `["travel.aid.pub"]`,
		`{"q":"hotels coding"}`:             `[]`,
		`{"q":"review","tags":["Travel"]}`:  `["travel.aid.pub"]`,
		`{"tags":["coding","review"]}`:      `["reviewer.aid.pub"]`,
		`{"tags":["coding","travel"]}`:      `[]`,
		`{"limit":1}`:                       `["reviewer.aid.pub"]`,
		`{"q":null,"tags":null,"limit":99}`: `["reviewer.aid.pub","travel.aid.pub"]`,
	} {
		if got := found(params); got != want {
			t.Errorf("query %s found %s, want %s", params, got, want)
		}
	}
	first := ask(t, d, "search.query", `{"limit":1}`)
	want := `{"items":[{"aid":"reviewer.aid.pub","name":"Reviewer","description":"Reviews code for engineers",` +
		`"tags":["coding","review"],"agent_md_url":"https://reviewer.aid.pub/agent.md"}],"next_cursor":"cur_EPOCH_1"}`
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("the first page (-want +got):\n%s", diff)
	}
	if got := found(`{"cursor":"cur_` + d.epoch + `_1"}`); got != `["travel.aid.pub"]` {
		t.Errorf("the second page has %s", got)
	}
	for params, want := range map[string]string{
		`{"q":1}`:                   "-32162",
		`{"limit":0}`:               "-32162",
		`{"limit":1.5}`:             "-32162",
		`{"tags":"coding"}`:         "-32162",
		`{"tags":[1]}`:              "-32162",
		`{"cursor":"x"}`:            "-32162",
		`{"cursor":"cur_0_1"}`:      "-32164",
		`{"cursor":"cur_EPOCH_-1"}`: "-32162",
		`{"cursor":"chg_EPOCH_1"}`:  "-32162",
		`{"q":"a b c d e f g h i j k l m n o p q"}`: "-32162",
		`{"q":"` + strings.Repeat("a", 257) + `"}`:  "-32162",
	} {
		if got := ask(t, d, "search.query", strings.ReplaceAll(params, "EPOCH", d.epoch)); got != want {
			t.Errorf("query %s: %s, want %s", params, got, want)
		}
	}
	if got := ask(t, d, "search.index", "{}"); got != "no such method" {
		t.Errorf("search.index: %s", got)
	}
}

func TestGetAgentAndSuggest(t *testing.T) {
	d := of(travel, reviewer)
	got := ask(t, d, "search.get_agent", `{"aid":"Travel.aid.pub"}`)
	if gjson.Get(got, "aid").Str != "travel.aid.pub" || gjson.Get(got, "updated_at").Str != "2026-01-01T00:00:00Z" ||
		!strings.HasPrefix(gjson.Get(got, "agent_md").Str, "---\naid: \"travel.aid.pub\"\nname: \"Travel\"\n") {
		t.Errorf("get_agent: %s", got)
	}
	for params, want := range map[string]string{
		`{"aid":"other.aid.pub"}`: "-32161",
		`{"aid":"-"}`:             "-32162",
		`{}`:                      "-32162",
	} {
		if got := ask(t, d, "search.get_agent", params); got != want {
			t.Errorf("get_agent %s: %s, want %s", params, got, want)
		}
	}
	for params, want := range map[string]string{
		`{}`: `{"suggestions":[{"type":"tag","value":"coding"},{"type":"tag","value":"review"},` +
			`{"type":"tag","value":"travel"}]}`,
		`{"prefix":"re"}`: `{"suggestions":[{"type":"tag","value":"review"},{"type":"aid","value":"reviewer.aid.pub"},` +
			`{"type":"query","value":"Reviewer"}]}`,
		`{"prefix":"plan"}`: `{"suggestions":[{"type":"query","value":"Plan a trip"}]}`,
		`{"prefix":"zzz"}`:  `{"suggestions":[]}`,
	} {
		if got := ask(t, d, "search.suggest", params); got != want {
			t.Errorf("suggest %s: %s, want %s", params, got, want)
		}
	}
}

// TestChanges follows the directory as another one would: by a snapshot, and then by its changes.
func TestChanges(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		d := of(travel)
		info := ask(t, d, "search.ap_info", "{}")
		version := gjson.Get(info, "current_snapshot_version").Str
		cursor := strings.ReplaceAll(gjson.Get(info, "change_cursor_head").Str, "EPOCH", d.epoch)
		snapshot := ask(t, d, "search.snapshot", `{"version":"`+version+`","cursor":null,"limit":500}`)
		if gjson.Get(snapshot, "items.#").Int() != 1 || gjson.Get(snapshot, "items.0.aid").Str != "travel.aid.pub" ||
			len(gjson.Get(snapshot, "items.0.agent_md_sha256").Str) != 64 || gjson.Get(snapshot, "has_more").Bool() {
			t.Errorf("the snapshot: %s", snapshot)
		}
		after := func() string {
			got := ask(t, d, "search.changes", `{"cursor":"`+cursor+`"}`)
			cursor = strings.ReplaceAll(gjson.Get(got, "next_cursor").Str, "EPOCH", d.epoch)
			var ops []string
			for _, c := range gjson.Get(got, "changes").Array() {
				ops = append(ops, c.Get("op").Str+" "+c.Get("aid").Str)
			}
			return strings.Join(ops, ", ")
		}
		if got := after(); got != "" {
			t.Errorf("nothing has changed, but there is %s", got)
		}
		d.set(nil, reviewer)
		if got, want := after(), "delete travel.aid.pub, upsert reviewer.aid.pub, upsert reviewer.aid.pub"; got != want {
			t.Errorf("the changes are %s, want %s", got, want)
		}
		if got := ask(t, d, "search.snapshot", `{"version":"`+version+`"}`); got != "-32163" {
			t.Errorf("an old snapshot: %s", got)
		}
		d.set(nil, reviewer) // as a reload does
		if got := after(); got != "" {
			t.Errorf("a reload has changed %s", got)
		}

		card := &translate.Card{Name: "One"}
		read := func(context.Context) (*translate.Card, time.Time, error) { return card, time.Now(), nil }
		d.set(nil, catalog.Agent{Name: "x", AID: "x.aid.pub", Card: read})
		after()
		card = &translate.Card{Name: "Two"}
		if got := after(); got != "" {
			t.Errorf("within a minute there is %s", got)
		}
		bubble.Pass(time.Minute)
		if got := after(); got != "upsert x.aid.pub" {
			t.Errorf("a changed card: %s", got)
		}

		first := ask(t, d, "search.changes", `{"limit":1}`)
		if !gjson.Get(first, "has_more").Bool() || gjson.Get(first, "next_cursor").Str != "chg_EPOCH_1" {
			t.Errorf("a page of changes: %s", first)
		}
		for range maxChanges {
			d.set(nil)
			d.set(nil, travel)
		}
		if got := ask(t, d, "search.changes", `{}`); got != "-32164" {
			t.Errorf("changes that are not kept: %s", got)
		}
		if len(d.changes) > maxChanges {
			t.Errorf("%d changes are kept", len(d.changes))
		}
	})
}

// TestHangingCard: an agent whose card does not arrive delays a search for no longer than 2 s, once a minute, and is
// shown without it.
func TestHangingCard(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		d := of()
		never := func(ctx context.Context) (*translate.Card, time.Time, error) {
			<-ctx.Done()
			return nil, time.Time{}, ctx.Err()
		}
		hangs := catalog.Agent{Name: "slow", AID: "slow.aid.pub", Card: never}
		d.set(nil, hangs, travel)
		began := time.Now()
		for range 3 {
			got := ask(t, d, "search.query", `{}`)
			if want := `["slow.aid.pub","Travel"]`; gjson.Get(got, "items.#.name").String() != want {
				t.Errorf("found %s", got)
			}
		}
		if waited := time.Since(began); waited != 2*time.Second {
			t.Errorf("three searches took %v", waited)
		}
	})
}

func FuzzSearch(f *testing.F) {
	f.Add("query", `{"q":"x","tags":["a"],"limit":3,"cursor":"cur_1_2"}`)
	f.Add("changes", `{"cursor":"chg_1_2","limit":9999999999999999999999}`)
	f.Add("snapshot", `{"cursor":{"a":[]},"version":7}`)
	d := of(travel, reviewer)
	f.Fuzz(func(t *testing.T, method, params string) {
		if !gjson.Valid(params) || !gjson.Parse(params).IsObject() {
			return
		}
		params = strings.ReplaceAll(params, "_1_", "_"+d.epoch+"_")
		result, _, err := d.Search(t.Context(), "search."+method, gjson.Parse(params))
		var refused *aun.Error
		if err != nil && !errors.As(err, &refused) || err == nil && result != nil && !json.Valid(result) {
			t.Errorf("%s %s: %s %v", method, params, result, err)
		}
	})
}

// TestConcurrentChanges: requests reading the catalogue while it changes take over its states in their order. A
// remaining agent is in no change but the first.
func TestConcurrentChanges(t *testing.T) {
	d := of()
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					d.list(t.Context())
				}
			}
		})
	}
	var agents []catalog.Agent
	for i := range 200 {
		aid := fmt.Sprintf("agent-%03d.aid.pub", i)
		agents = append(agents, fixed(aid, &translate.Card{Name: aid}))
		d.set(nil, agents...)
	}
	close(done)
	readers.Wait()
	for _, c := range d.changes {
		if c.deleted {
			t.Fatalf("%s was deleted for a while", c.aid)
		}
	}
}
