// SPDX-License-Identifier: Apache-2.0

package adp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/acps/catalog"
	"github.com/aip-gateway/aip-gateway/translate"
)

const (
	food  = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"
	trips = "1.2.156.3088.1.1.34C2.478BDF.3GF547.0GGS"
	data  = "10001000011K912345E789ABCDEF2353"
)

// of returns a server of agents with these ACS.
func of(t testing.TB, documents map[string]string) *Server {
	t.Helper()
	c := new(catalog.Catalog)
	var agents []catalog.Agent
	for aic, text := range documents {
		agents = append(agents, catalog.Agent{Name: aic, AIC: aic,
			Card: func(context.Context) (*translate.Card, time.Time, error) {
				return new(translate.Card), time.Time{}, nil
			},
			ACS: func(context.Context) ([]byte, error) { return []byte(text), nil },
		})
	}
	c.Set(agents)
	return NewServer(c, About{
		Alive: func(e *catalog.Entry) (bool, time.Time) {
			if e.AIC == food {
				return false, time.Time{}
			}
			return true, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		},
		Calls: func(e *catalog.Entry) uint64 { return uint64(len(documents[e.AIC])) },
	})
}

var three = map[string]string{
	food: `{"aic":"` + food + `","name":"北京美食","description":"推荐北京的美食",
		"active":true,"version":"1.2.0",
		"lastModifiedTime":"2026-01-02T08:00:00+08:00","provider":{"organization":"BUPT University","countryCode":"CN"},
		"endPoints":[{"url":"https://a.example","transport":"JSONRPC"}],"securitySchemes":{"mtls":{"type":"mutualTLS"}},
		"capabilities":{"streaming":true,"messageQueue":["rabbitmq:>=3.9"]},
		"certificate":{"requestedValidity":90},"entityMeta":{"region":"cn-bj"},
		"skills":[{"id":"food","name":"美食推荐","description":"推荐餐厅","tags":["美食"]}]}`,
	trips: `{"aic":"` + trips + `","name":"Trips","description":"Plans trips to Beijing","active":true,"version":"2.0.0",
		"lastModifiedTime":"2026-03-02T08:00:00+08:00","provider":{"organization":"Other"},"endPoints":[],
		"capabilities":{"streaming":false,"messageQueue":[]},
		"skills":[{"id":"plan","name":"Plan a trip","description":"Plans days","tags":["travel","Beijing"]},
			{"id":"hotel","name":"Hotels","description":"Finds hotels","tags":["travel"]}]}`,
	data: `{"aic":"` + data + `","name":"Data","description":"Analyses data","active":true,"version":"0.9",
		"provider":{},"skills":[]}`,
}

// found returns the skills that a request finds.
func found(t testing.TB, s *Server, request string) string {
	t.Helper()
	r, bad := Parse([]byte(request))
	if bad != nil {
		return bad.Error()
	}
	var ids []string
	for _, d := range s.Find(t.Context(), r, func(*catalog.Entry) bool { return true }).skills {
		ids = append(ids, map[string]string{food: "food", trips: "trips", data: "data"}[d.agent.aic]+"/"+d.skill.ID)
	}
	return strings.Join(ids, " ")
}

func TestQueries(t *testing.T) {
	s := of(t, three)
	for request, want := range map[string]string{
		`{"query":"hotels"}`:                                "trips/hotel",
		`{"query":"a trip to Beijing, please"}`:             "trips/plan trips/hotel",
		`{"query":"我想吃美食"}`:                                 "food/food",
		`{"query":"nothing of it"}`:                         "",
		`{"type":"exploratory"}`:                            "food/food trips/plan data/",
		`{"type":"exploratory","query":"zzz"}`:              "food/food trips/plan data/",
		`{"type":"exploratory","query":"hotel"}`:            "trips/hotel",
		`{"type":"trending","limit":1}`:                     "food/food",
		`{"type":"filtered","query":"x","filter":{}}`:       "food/food trips/plan data/",
		`{"query":"data","type":null,"limit":null,"x":[1]}`: "data/",
	} {
		if got := found(t, s, request); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
}

func TestFilters(t *testing.T) {
	s := of(t, three)
	const all = "food/food trips/plan data/"
	for filter, want := range map[string]string{
		`{"conditions":[{"field":"provider.organization","op":"contains","value":"university"}]}`:   "food/food",
		`{"conditions":[{"field":"provider.organization","op":"containsCs","value":"university"}]}`: "",
		`{"conditions":[{"field":"provider.organization","op":"ne","value":"other"}]}`:              "food/food data/",
		`{"conditions":[{"field":"provider.organization","op":"neCs","value":"other"}]}`:            all,
		`{"conditions":[{"field":"capabilities.streaming","op":"eq","value":true}]}`:                "food/food",
		`{"conditions":[{"field":"endPoints.transport","op":"in","value":["jsonrpc"]}]}`:            "food/food",
		`{"conditions":[{"field":"endPoints.transport","op":"nin","value":["JSONRPC"]}]}`:           "trips/plan data/",
		`{"conditions":[{"field":"endPoints","op":"exists","value":true}]}`:                         "food/food",
		`{"conditions":[{"field":"endPoints","op":"exists","value":false}]}`:                        "trips/plan data/",
		`{"conditions":[{"field":"skills.tags","op":"anyOf","value":["beijing","x"]}]}`:             "trips/plan",
		`{"conditions":[{"field":"skills.tags","op":"allOf","value":["beijing","x"]}]}`:             "",
		`{"conditions":[{"field":"skills.tags","op":"noneOf","value":["beijing"]}]}`:                all, // hotels
		`{"conditions":[{"field":"skills","op":"sizeGte","value":2}]}`:                              "trips/plan",
		`{"conditions":[{"field":"skills","op":"size","value":0}]}`:                                 "data/",
		`{"conditions":[{"field":"version","op":"gte","value":"1.2.0"}]}`:                           "food/food trips/plan",
		`{"conditions":[{"field":"aic","op":"startsWith","value":"1.2.156"}]}`:                      "food/food trips/plan",
		`{"conditions":[{"field":"lastModifiedTime","op":"eq","value":"2026-01-02T00:00:00Z"}]}`:    "food/food",
		`{"conditions":[{"field":"certificate.requestedValidity","op":"between","value":[30,90]}]}`: "food/food",
		`{"conditions":[{"field":"securitySchemes","op":"hasKey","value":"mtls"}]}`:                 "food/food",
		`{"conditions":[{"field":"securitySchemes.mtls.type","op":"eqCs","value":"mutualTLS"}]}`:    "food/food",
		`{"conditions":[{"field":"securitySchemes","op":"hasNoKey","value":["mtls","oidc"]}]}`:      "trips/plan data/",
		`{"conditions":[{"field":"entityMeta.region","op":"eq","value":"CN-BJ"}]}`:                  "food/food",
		`{"conditions":[{"field":"capabilities.messageQueue","op":"anyOf","value":["mqtt:5.0"]}]}`:  "",
		`{"logic":"not","conditions":[{"field":"capabilities.streaming","op":"eq","value":true}]}`:  "trips/plan data/",
		`{"logic":"or","conditions":[{"field":"name","op":"eq","value":"data"}],"groups":[{"conditions":[` +
			`{"field":"active","op":"eq","value":true},{"field":"name","op":"eq","value":"trips"}]}]}`: "trips/plan data/",
		`{"conditions":[{"field":"lastModifiedTime","op":"between",` +
			`"value":["2026-02-01T00:00:00Z","2026-04-01T00:00:00Z"]}]}`: "trips/plan",
	} {
		if got := found(t, s, `{"type":"filtered","filter":`+filter+`}`); got != want {
			t.Errorf("%s: %s, want %s", filter, got, want)
		}
	}
}

// TestRefused has what the specification refuses, also where the reference answers.
func TestRefused(t *testing.T) {
	condition := func(field, op, value string) string {
		return `{"query":"x","filter":{"conditions":[{"field":"` + field + `","op":"` + op + `","value":` + value + `}]}}`
	}
	deep := `{"query":"x","filter":{"groups":[{"groups":[{"groups":[{}]}]}]}}`
	many := `{"query":"x","filter":{"groups":[` + strings.Repeat("{},", maxConditions) + `{}]}}`
	for request, code := range map[string]int{
		`{`: 40000, `[]`: 40000, `{"query":"x"} x`: 40000, `{"query":"x"}}`: 40000, `{"query":"x"}]`: 40000,
		`{"type":"nonsense","query":"x"}`: 40000,
		`{"query":"x","limit":51}`:        40000, `{"query":"x","limit":0}`: 40000, `{"query":7}`: 40000,
		`{"query":"` + strings.Repeat("x", 1001) + `"}`: 40000,
		`{"type":"explicit"}`:                           40001, `{"query":"  "}`: 40001,
		`{"query":"x","forwardDepthLimit":9}`: 40002,
		`{"query":"x","forwardChain":["x"]}`:  40003, `{"type":"filtered"}`: 40004,
		`{"query":"x","forwardFanoutLimit":0}`:                         40005,
		condition("onlyAvailable", "eq", "true"):                       40004,
		condition("provider.colour", "eq", `"x"`):                      40004,
		condition("name", "like", `"x"`):                               40004,
		condition("name", "anyOf", `["x"]`):                            40004,
		condition("skills.tags", "eq", `"x"`):                          40004,
		condition("name", "eq", `7`):                                   40004,
		condition("name", "in", `[]`):                                  40004,
		condition("name", "in", `["x",7]`):                             40004,
		condition("lastModifiedTime", "gt", `"today"`):                 40004,
		condition("lastModifiedTime", "between", `["x"]`):              40004,
		condition("certificate.requestedValidity", "between", `[9,3]`): 40004,
		condition("skills", "size", `1.5`):                             40004,
		condition("skills", "exists", `"yes"`):                         40004,
		condition("securitySchemes", "hasKey", `[7]`):                  40004,
		condition("active", "contains", `"x"`):                         40004,
		deep:                                                           40004, many: 40004,
		`{"query":"x","filter":{"logic":"xor"}}`: 40004, `{"query":"x","filter":{"logic":"or"}}`: 40004,
	} {
		_, bad := Parse([]byte(request))
		if bad == nil || bad.Code != code || bad.Status() != 400 || bad.Detail == "" {
			t.Errorf("%.150s: %v, want %d", request, bad, code)
		}
	}
	chained, bad := Parse([]byte(`{"query":"x","forwardChain":["` + food + `","` + trips + `"]}`))
	if bad != nil {
		t.Fatal(bad)
	}
	for _, c := range []struct {
		own, peer string
		code      int
	}{{"", trips, 0}, {data, trips, 0}, {food, trips, 50801}, {strings.ToLower(food), trips, 50801}, {"", food, 50803},
		{"", "", 50803}} {
		if err := chained.Check(c.own, c.peer); (err == nil) != (c.code == 0) || err != nil && err.Code != c.code {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestAnswer: what the caller may not call is not there, and does not count for the limit.
func TestAnswer(t *testing.T) {
	s := of(t, three)
	r, _ := Parse([]byte(`{"type":"trending","limit":1}`))
	asked := 0
	f := s.Find(t.Context(), r, func(e *catalog.Entry) bool { asked++; return e.AIC != food })
	want := `{"result":{"acsMap":{"` + trips + `":` + compacted(t, three[trips]) + `},"agents":[{"group":"trending",` +
		`"agentSkills":[{"aic":"` + trips + `","skillId":"plan","ranking":1}]}],` +
		`"aliveMap":{"` + trips + `":{"alive":true,"aliveLastSeenAt":"2026-01-01T00:00:00Z"}}}}`
	if diff := cmp.Diff(want, string(f.Encode())); diff != "" || asked != 2 {
		t.Errorf("asked %d times, the answer (-want +got):\n%s", asked, diff)
	}
	times, alive := 0, s.about.Alive
	s.about.Alive = func(e *catalog.Entry) (bool, time.Time) { times++; return alive(e) }
	if got := found(t, s, `{"query":"travel"}`); got != "trips/hotel trips/plan" || times != 1 {
		t.Errorf("found %s, and asked %d times whether the agent is alive", got, times)
	}
	r, _ = ParseV1([]byte(`{"query":"hotels","limit":3}`))
	f = s.Find(t.Context(), r, func(*catalog.Entry) bool { return true })
	want = `{"query":"hotels","agents":[{"acs":` + compacted(t, three[trips]) +
		`,"skill_description":"Finds hotels","skill_id":"hotel","ranking":1,"memo":""}]}`
	if diff := cmp.Diff(want, string(f.EncodeV1())); diff != "" {
		t.Errorf("the answer of v01 (-want +got):\n%s", diff)
	}
	for _, bad := range []string{`{}`, `{"query":"x","limit":11}`, `{"query":"` + strings.Repeat("x", 1001) + `"}`, `x`} {
		if _, err := ParseV1([]byte(bad)); err == nil {
			t.Errorf("v01: %.30s is accepted", bad)
		}
	}
	r, _ = Parse([]byte(`{"type":"filtered","filter":{"conditions":[{"field":"aic","op":"eq","value":"` +
		strings.ToLower(food) + `"}]}}`))
	got := string(s.Find(t.Context(), r, func(*catalog.Entry) bool { return true }).Encode())
	if !strings.Contains(got, `"aliveMap":{"`+food+`":{"alive":false,"aliveLastSeenAt":null}}`) {
		t.Errorf("an agent that is down: %s", got)
	}
	r, _ = Parse([]byte(`{"query":"zzz"}`))
	got = string(s.Find(t.Context(), r, nil).Encode())
	if want := `{"result":{"acsMap":{},"agents":[{"group":"zzz","agentSkills":[]}],"aliveMap":{}}}`; got != want {
		t.Errorf("nothing is found as %s", got)
	}
}

func compacted(t *testing.T, text string) string {
	t.Helper()
	out, err := json.Marshal(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// many returns a server of so many agents.
func many(t testing.TB, n int) *Server {
	all := make(map[string]string)
	for i := range n {
		aic := fmt.Sprintf("1.2.156.3088.1.1.34C2.478BDF.%d.0000", i)
		all[aic] = fmt.Sprintf(`{"aic":%q,"name":"Agent %d","description":"Does the work of department %d for customers",
			"active":true,"version":"1.0.0","provider":{"organization":"Example %d"},
			"endPoints":[{"url":"https://agent.example.com/%d","transport":"JSONRPC","security":[{"mtls":[]}]}],
			"skills":[
				{"id":"a","name":"Plan trips %d","description":"Plans trips and finds hotels","tags":["travel","t%d"]},
			{"id":"b","name":"Analyse","description":"Analyses data of sales","tags":["data"],"examples":["sales of %d"]}]}`,
			aic, i, i%50, i%7, i, i, i%100, i)
	}
	return of(t, all)
}

// queries are those of which the cost is looked at. With each, a query may do work for each agent that there is; else
// its work is that of its answer.
var queries = map[string]struct {
	request string
	each    bool
}{
	"explicit": {`{"query":"plan trips and hotels for sales of department 7","limit":50}`, false},
	"filtered": {`{"type":"filtered","limit":50,"filter":{"conditions":[{"field":"provider.organization",` +
		`"op":"contains","value":"example 3"},{"field":"skills.tags","op":"anyOf","value":["t1","t2","data"]}]}}`, true},
	"nothing": {`{"type":"filtered","filter":{"conditions":[{"field":"skills.tags","op":"allOf","value":["no","x"]}]}}`,
		true},
	"trending": {`{"type":"trending"}`, false},
}

// answered answers a query of a caller who may call every second agent. It returns of how many it was asked whether the
// caller may call them.
func answered(t testing.TB, s *Server, request string) (asked int) {
	r, bad := Parse([]byte(request))
	if bad != nil {
		t.Fatal(bad)
	}
	_ = s.Find(t.Context(), r, func(*catalog.Entry) bool { asked++; return asked%2 == 0 }).Encode()
	return asked
}

// TestCostOfQueries holds what a query costs among 1,000 agents to what it costs among 100, by counts that are always
// the same: the memory that is taken, and how often it is asked whether the caller may call an agent.
func TestCostOfQueries(t *testing.T) {
	hundred, all := many(t, 100), many(t, 1000)
	for name, q := range queries {
		t.Run(name, func(t *testing.T) {
			few, most := answered(t, hundred, q.request), answered(t, all, q.request)
			small := testing.AllocsPerRun(10, func() { answered(t, hundred, q.request) })
			large := testing.AllocsPerRun(10, func() { answered(t, all, q.request) })
			t.Logf("among 100 agents: %v allocations, %d questions; among 1,000: %v and %d", small, few, large, most)
			factor := 1.2
			if q.each {
				factor = 10
			}
			if large > factor*small+32 || float64(most) > factor*float64(few)+1 {
				t.Error("the cost has grown with the number of agents")
			}
		})
	}
}

// BenchmarkDiscover: an answer about 1,000 agents, of which the caller may call every second one.
func BenchmarkDiscover(b *testing.B) {
	s := many(b, 1000)
	s.current(b.Context())
	for name, q := range queries {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				answered(b, s, q.request)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"type":"filtered","limit":3,"filter":{"logic":"not",` +
		`"conditions":[{"field":"skills.tags","op":"anyOf","value":["x"]}],` +
		`"groups":[{"logic":"or","conditions":[{"field":"version","op":"gt","value":"1"}]}]}}`)
	f.Add(`{"query":"北京 trips","forwardChain":["10001000011K912345E789ABCDEF2353"]}`)
	s := of(f, three)
	f.Fuzz(func(t *testing.T, request string) {
		if r, bad := Parse([]byte(request)); bad == nil {
			_ = r.Check(food, trips)
			out := s.Find(t.Context(), r, func(*catalog.Entry) bool { return true })
			if len(out.skills) > MaxLimit || !json.Valid(out.Encode()) {
				t.Errorf("%s: %s", request, out.Encode())
			}
		} else if !json.Valid(bad.Encode()) || bad.Status() != 400 {
			t.Errorf("%s: %s", request, bad.Encode())
		}
		if r, bad := ParseV1([]byte(request)); bad == nil {
			if out := s.Find(t.Context(), r, func(*catalog.Entry) bool { return true }); !json.Valid(out.EncodeV1()) {
				t.Errorf("%s: %s", request, out.EncodeV1())
			}
		}
	})
}
