// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// script is a registry without a network: each request gets the next answer, and then none.
type script struct {
	began time.Time

	mu      sync.Mutex
	newest  string // reported by /info; empty for none
	answers []answer
	asked   []string // the requests, but those for /info
	at      []time.Duration
}

// requests returns the requests, and when they came.
func (s *script) requests() ([]string, []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked), slices.Clone(s.at)
}

// next returns the next answer; false if there is none.
func (s *script) next(r *http.Request) (a answer, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path == "/acps-dsp-v2/info" {
		return answer{status: http.StatusOK, body: `{"retention":{"oldest_seq":2,"newest_seq":` + s.newest + `}}`}, true
	}
	s.asked, s.at = append(s.asked, r.URL.Path+"?"+r.URL.RawQuery), append(s.at, time.Since(s.began))
	if ok = len(s.answers) > 0; ok {
		a, s.answers = s.answers[0], s.answers[1:]
	}
	return a, ok
}

// answer is an answer of a registry, after a time; a status of 0 breaks the connection off.
type answer struct {
	after  time.Duration
	status int
	header http.Header
	body   string
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	a, ok := s.next(r)
	if !ok {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if err := waitFor(r.Context(), a.after); err != nil {
		return nil, err
	}
	body := io.Reader(strings.NewReader(a.body))
	if a.status == 0 {
		a.status, body = http.StatusOK, io.MultiReader(body, broken{})
	}
	if a.header == nil {
		a.header = http.Header{}
	}
	return &http.Response{StatusCode: a.status, Header: a.header, Body: io.NopCloser(body)}, nil
}

func waitFor(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// follow follows a scripted registry in a bubble.
func follow(t *testing.T, answers []answer, then func(t *testing.T, f *Feed, s *script)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		s := &script{answers: answers, began: time.Now()}
		c, err := New(Config{URL: "http://localhost", Transport: s})
		if err != nil {
			t.Fatal(err)
		}
		f := NewFeed(c, slog.New(slog.DiscardHandler))
		f.Start()
		then(t, f, s)
		f.Close()
	})
}

func dsp(t testing.TB, name string) string {
	t.Helper()
	raw, err := os.ReadFile("testdata/dsp/" + name + ".ndjson")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func wholeSnapshot(seq, body string) answer {
	return answer{status: http.StatusOK, body: body, header: http.Header{"X-Snapshot-Id": {"snap"},
		"X-Snapshot-Seq": {seq}, "X-Snapshot-Chunk-Total": {"1"}}}
}

func next(seq string, after time.Duration, body string) answer {
	status := http.StatusOK
	if body == "" {
		status = http.StatusNoContent
	}
	return answer{after: after, status: status, body: body, header: http.Header{"X-Next-Seq": {seq}}}
}

func line(aic, payload string) string {
	return `{"seq":7,"op":"upsert","type":"acs","id":"` + aic + `","payload":` + payload + "}\n"
}

// The agents of testdata.
const (
	partnerAIC  = "1.2.156.3088.1.0001.00001.NENBED.MH2BLU.0VKU" // active
	disabledAIC = "1.2.156.3088.1.0001.00001.2ZRV50.SGSMLR.0KMU"
)

// TestFeed follows a registry with captured answers, through its faults: each change has its effect once.
func TestFeed(t *testing.T) {
	follow(t, []answer{
		{status: 503},
		{status: 0, body: dsp(t, "snapshot")},                                           // broken off
		wholeSnapshot("18", dsp(t, "snapshot")),                                         // at 30s
		next("19", 10*time.Second, line(disabledAIC, `{"active":true}`)),                // at 40s
		next("20", 10*time.Second, dsp(t, "disabled")),                                  // at 50s
		next("20", 30*time.Second, ""),                                                  // at 80s
		next("21", 10*time.Second, line(partnerAIC, `{"active":true,"endPoints":[1]}`)), // at 90s: it has moved
		{status: http.StatusGone, after: time.Second},                                   // at 91s
		wholeSnapshot("40", line(partnerAIC, `{"active":true,"endPoints":[1]}`)),        // at 91s
	}, func(t *testing.T, f *Feed, s *script) {
		check := func(at time.Duration, aic string, known, active bool) Standing {
			t.Helper()
			bubble.Pass(at - time.Since(s.began) + time.Millisecond)
			got := f.Agent(aic)
			if got.Known != known || got.Active != active {
				t.Errorf("at %v: %+v", at, got)
			}
			return got
		}
		check(time.Second, partnerAIC, false, false)
		if f.Health().Err == nil {
			t.Error("a registry that answers 503 is healthy")
		}
		check(11*time.Second, partnerAIC, false, false) // the part before the end of a broken answer does not count
		before := check(30*time.Second, partnerAIC, true, true)
		check(40*time.Second, disabledAIC, true, true)
		turned, active, other := f.Changed(), f.Active(disabledAIC), f.Active(partnerAIC)
		if active.Err() != nil {
			t.Error("an active agent is said to be none")
		}
		check(50*time.Second, disabledAIC, true, false)
		if active.Err() == nil || f.Active(disabledAIC).Err() == nil || other.Err() != nil {
			t.Error("it is not said of the agent alone that it was disabled")
		}
		select {
		case <-turned:
		default:
			t.Error("it is not said that an agent was disabled")
		}
		turned = f.Changed()
		after := check(90*time.Second, partnerAIC, true, true)
		if after.Revision == before.Revision {
			t.Error("an agent that has moved has the same revision")
		}
		select {
		case <-turned:
			t.Error("an agent that has moved is said to have become active or inactive")
		default:
		}
		check(97*time.Second, disabledAIC, true, false) // missing in a snapshot, it stays inactive
		if got := f.Agent(partnerAIC); got.Revision != after.Revision {
			t.Error("a snapshot that says the same changes the revision")
		}
		asked, at := s.requests()
		const changes, snapshots = "/acps-dsp-v2/changes?", "/acps-dsp-v2/snapshots?"
		if want := changes + "seq=19&start_seq=19&wait=30"; !slices.Contains(asked, want) {
			t.Errorf("nothing is asked as %s: %q", want, asked)
		}
		if last := asked[len(asked)-1]; last != changes+"seq=40&start_seq=40&wait=30" {
			t.Errorf("the last request is %s", last)
		}
		for i, r := range asked[:3] {
			if want := []time.Duration{0, firstRetry, 3 * firstRetry}[i]; at[i] != want ||
				!strings.HasPrefix(r, snapshots) {
				t.Errorf("request %d at %v, want at %v: %s", i, at[i], want, r)
			}
		}
	})
}

// TestActive: one context of an agent lasts until it is disabled, and there is another one when it is enabled.
func TestActive(t *testing.T) {
	f := NewFeed(nil, slog.New(slog.DiscardHandler))
	first := f.Active(partnerAIC)
	step := func(active bool, firstErr, err error) {
		t.Helper()
		if _, _, err := f.merge(map[agentKey]state{keyOf(partnerAIC): {active: active}}, true); err != nil {
			t.Fatal(err)
		}
		if got := f.Active(partnerAIC).Err(); first.Err() != firstErr || got != err {
			t.Errorf("active %t: the first context has %v, the present one %v", active, first.Err(), got)
		}
	}
	step(true, nil, nil)
	if f.Active(partnerAIC) != first {
		t.Error("an agent that is active has another context")
	}
	step(false, context.Canceled, context.Canceled)
	step(false, context.Canceled, context.Canceled)
	step(true, context.Canceled, nil)
	step(false, context.Canceled, context.Canceled)
}

// TestFeedOfHurry: a registry answering at once with nothing new, or without a snapshot, is not asked all the time.
func TestFeedOfHurry(t *testing.T) {
	hurry := []answer{wholeSnapshot("18", line(partnerAIC, `{"active":true}`))}
	gone := []answer{}
	for range 100 {
		hurry = append(hurry, next("18", 0, line(partnerAIC, `{"active":true}`)))
		gone = append(gone, answer{status: http.StatusGone})
	}
	for name, tt := range map[string]struct {
		answers []answer
		most    int
	}{"the same change": {hurry, 15}, "no snapshot": {gone, 3}} {
		follow(t, tt.answers, func(t *testing.T, _ *Feed, s *script) {
			bubble.Pass(time.Minute)
			asked, _ := s.requests()
			if n := len(asked); n < 2 || n > tt.most {
				t.Errorf("%s: %d requests in a minute, want at most %d", name, n, tt.most)
			}
		})
	}
}

// TestFeedWithTooManyAgents: an agent without room stays unknown, and costs the others nothing. There is always room
// for an agent asked for.
func TestFeedWithTooManyAgents(t *testing.T) {
	follow(t, []answer{
		wholeSnapshot("18", line(partnerAIC, `{"active":true}`)),
		next("19", 10*time.Second, line(disabledAIC, `{"active":true}`)+line(partnerAIC, `{"active":false}`)),
	}, func(t *testing.T, f *Feed, s *script) {
		bubble.Pass(time.Second)
		partner := f.Active(partnerAIC)
		f.mu.Lock()
		clear(f.agents)
		for i := range maxAgents {
			f.agents[agentKey{byte(i), byte(i >> 8), byte(i >> 16), 1}] = state{active: true}
		}
		f.mu.Unlock()
		bubble.Pass(10 * time.Second)
		if h := f.Health(); h.Err != nil || time.Since(h.Answered) > pollPause {
			t.Errorf("the health is %+v", h)
		}
		if f.Agent(disabledAIC).Known || partner.Err() == nil {
			t.Errorf("without room: %+v, asked for: %v", f.Agent(disabledAIC), partner.Err())
		}
		asked, _ := s.requests()
		if last := asked[len(asked)-1]; !strings.Contains(last, "seq=19&") {
			t.Errorf("the last request is %s", last)
		}
	})
}

// TestBadAgent: an unreadable agent is not active, or unknown if not even its AIC can be read. It keeps no caller from
// hearing of the others.
func TestBadAgent(t *testing.T) {
	large := `{"active":true,"description":"` + strings.Repeat("x", maxLine) + `"}`
	for name, bad := range map[string]struct {
		line  string
		known bool
	}{
		"too large":               {line(disabledAIC, large), true},
		"too large, and backward": {`{"payload":` + large + `,"type":"acs","id":"` + disabledAIC + `"}` + "\n", false},
		"no JSON":                 {line(disabledAIC, `{"active":true`), true},
		"nothing":                 {"<html>\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			change := bad.line + line(partnerAIC, `{"active":false}`)
			follow(t, []answer{
				wholeSnapshot("18", line(partnerAIC, `{"active":true}`)), next("20", 0, change), next("20", time.Minute, ""),
			}, func(t *testing.T, f *Feed, _ *script) {
				bubble.Pass(time.Second)
				if got := f.Agent(disabledAIC); got.Known != bad.known || got.Active {
					t.Errorf("the bad one is %+v", got)
				}
				if got, h := f.Agent(partnerAIC), f.Health(); !got.Known || got.Active || h.Err != nil {
					t.Errorf("the other one is %+v, the health %v", got, h.Err)
				}
			})
		})
	}
}

// TestRestored: a registry restored from a backup has numbers below the last one, and reports nothing new for each
// number not reached. All of its agents are read anew, once.
func TestRestored(t *testing.T) {
	inactive := `{"status":"error","error":{"code":40310,"message":"Agent is not active"}}`
	for name, tt := range map[string]struct {
		newest    string // afterwards
		answer    answer
		snapshots int
	}{
		"waits":                    {"12", next("18", pollWait, ""), 2},
		"breaks off":               {"12", answer{status: 503, after: pollWait}, 2},
		"has forgotten changes":    {"0", next("18", pollWait, ""), 2},
		"is as before":             {"18", next("18", pollWait, ""), 1},
		"has newer ones":           {"20", next("18", pollWait, ""), 1},
		"says no number":           {"null", next("18", pollWait, ""), 1},
		"says what is no document": {"", next("18", pollWait, ""), 1},
	} {
		t.Run(name, func(t *testing.T) {
			again := wholeSnapshot("12", line(disabledAIC, `{"active":true}`))
			if tt.newest == "0" { // its snapshot has a number without a change any more
				again.header.Set("X-Snapshot-Seq", "18")
			}
			answers := []answer{wholeSnapshot("18", line(partnerAIC, `{"active":true}`)), tt.answer}
			if tt.snapshots == 2 {
				answers = append(answers, again, answer{status: 403, body: inactive})
			}
			for range 3 {
				answers = append(answers, next(again.header.Get("X-Snapshot-Seq"), pollWait, ""))
			}
			follow(t, answers, func(t *testing.T, f *Feed, s *script) {
				bubble.Pass(time.Second)
				partner := f.Active(partnerAIC)
				s.mu.Lock()
				s.newest = tt.newest
				s.mu.Unlock()
				bubble.Pass(3 * time.Minute)
				asked, _ := s.requests()
				n := 0
				for _, r := range asked {
					if strings.HasPrefix(r, "/acps-dsp-v2/snapshots") {
						n++
					}
				}
				if n != tt.snapshots {
					t.Errorf("%d snapshots, want %d: %q", n, tt.snapshots, asked)
				}
				if is := tt.snapshots > 1; (partner.Err() != nil) != is || f.Agent(disabledAIC).Active != is {
					t.Errorf("the one that is inactive now has %v, the new one is %+v", partner.Err(), f.Agent(disabledAIC))
				}
			})
		})
	}
}

// TestGap: an agent active before a gap, and missing in the snapshot after it, is asked for, until the registry knows
// its fate.
func TestGap(t *testing.T) {
	inactive := `{"status":"error","error":{"code":40310,"message":"Agent is not active"}}`
	for name, tt := range map[string]struct {
		answer answer
		active bool
	}{
		"disabled": {answer{status: 403, body: inactive}, false},
		"deleted":  {answer{status: 404, body: `{"status":"error"}`}, false},
		"active":   {answer{status: 200, body: `{"aic":"` + partnerAIC + `","active":true}`}, true},
	} {
		t.Run(name, func(t *testing.T) {
			follow(t, []answer{
				wholeSnapshot("18", line(partnerAIC, `{"active":true}`)),
				{status: http.StatusGone, after: time.Second},
				wholeSnapshot("40", line(disabledAIC, `{"active":true}`)),
				{status: 503},
				next("41", time.Second, line(disabledAIC, `{"active":false}`)),
				tt.answer,
			}, func(t *testing.T, f *Feed, _ *script) {
				bubble.Pass(500 * time.Millisecond)
				partner := f.Active(partnerAIC)
				bubble.Pass(10 * time.Second)
				got := f.Agent(partnerAIC)
				if !got.Known || got.Active != tt.active || (partner.Err() == nil) != tt.active {
					t.Errorf("it is %+v, and its context has %v", got, partner.Err())
				}
			})
		})
	}
}

func FuzzReadAgents(f *testing.F) {
	for _, name := range []string{"snapshot", "disabled", "deleted"} {
		f.Add([]byte(dsp(f, name)))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		found := make(map[agentKey]state)
		if lines, err := readAgents(bytes.NewReader(raw), found); err == nil && len(found) > lines {
			t.Errorf("%d agents in %d lines", len(found), lines)
		}
	})
}

// TestAsk asks once about an agent unknown to the feed; the feed then has it as disabled until it is enabled.
func TestAsk(t *testing.T) {
	const missing = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"
	inactive := `{"status":"error","error":{"code":40310,"message":"Agent is not active"}}`
	for name, tt := range map[string]struct {
		answer answer
		want   Standing
		failed bool
	}{
		"disabled": {answer{status: 403, body: inactive}, Standing{Known: true}, false},
		"active": {answer{status: 200, body: `{"aic":"` + missing + `","active":true}`}, Standing{Known: true, Active: true},
			false},
		"not its own": {answer{status: 404, body: `{"status":"error"}`}, Standing{}, false},
		"away":        {answer{status: 503}, Standing{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := &script{answers: []answer{tt.answer, {status: 403, body: inactive}}, began: time.Now()}
				c, err := New(Config{URL: "http://localhost", Transport: s})
				if err != nil {
					t.Fatal(err)
				}
				f := NewFeed(c, slog.New(slog.DiscardHandler))
				defer f.Close()
				active, changed := f.Active(missing), f.Changed()
				if err := f.Ask(t.Context(), missing); (err != nil) != tt.failed {
					t.Errorf("asking: %v", err)
				}
				told := false
				select {
				case <-changed:
					told = true
				default:
				}
				disabled := tt.want.Known && !tt.want.Active
				if got := f.Agent(missing); got != tt.want || told != tt.want.Known || (active.Err() != nil) != disabled {
					t.Errorf("it is %+v, and told: %t", got, told)
				}
				if !disabled {
					return
				}
				if err := f.Ask(t.Context(), missing); err != nil || len(s.asked) != 1 {
					t.Errorf("it is asked again: %v, %v", s.asked, err)
				}
				if _, _, err := f.merge(map[agentKey]state{keyOf(partnerAIC): {active: true}}, true); err != nil {
					t.Fatal(err)
				}
				if got := f.Agent(missing); got.Active || f.Health().Inactive != 1 {
					t.Errorf("after a snapshot without it, it is %+v", got)
				}
				if _, _, err := f.merge(map[agentKey]state{keyOf(missing): {active: true}}, false); err != nil {
					t.Fatal(err)
				}
				if !f.Agent(missing).Active || f.Health().Inactive != 0 {
					t.Error("it is not active after it was enabled")
				}
			})
		})
	}
}
