// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// wildAgent is an implementation of agents that people run, with a model by rule: a program in interop.
//
// To add one, append it to the list of its kind, and its row to docs/compatibility.md.
type wildAgent struct {
	site.Pinned
	v1      bool     // it speaks A2A 1.0, or else 0.3
	program []string // as sdkCommand takes it
	card    string   // where its card is; default: the place that A2A names
	dialect string   // in the configuration; default: a2a
	path    string   // of its URL in the configuration
	theirs  []wildTheirs

	// answer returns what answers its question; default: the text "blue".
	answer func(*wildUser) site.Object
}

// wildTheirs is a deed of which something else comes directly than through the gateway, or that the agent cannot do.
type wildTheirs struct {
	deed            string   // one of wildDeeds, or of wildCuts
	why             string   // as the page says it
	missing         bool     // the agent cannot do it
	direct, through *wildEnd // what comes of it, where it can
	notYet          bool     // the gateway does not do it yet: what comes of it must differ, and the page says so
}

// wildDeed is what a user has an agent do.
type wildDeed struct {
	name string
	do   func(*wildUser, *wildAgent) wildEnd
	says string // what the agent must have said directly, so that two failures are not taken for a success
}

var wildDeeds = []wildDeed{
	{"start", func(u *wildUser, _ *wildAgent) wildEnd {
		return u.end(u.all("message/send", u.text("hello")))
	}, "echo: hello"},
	{"stream", func(u *wildUser, _ *wildAgent) wildEnd {
		return u.end(u.all("message/stream", u.text("stream 4 20")))
	}, "w3"},
	{"question", func(u *wildUser, a *wildAgent) wildEnd {
		if err := u.all("message/stream", u.text("ask")); err != nil || u.state != "input-required" {
			return u.end(errors.Join(err, errors.New("it does not ask")))
		}
		answer := u.text
		if a.answer != nil {
			answer = func(string) site.Object { return a.answer(u) }
		}
		end := u.end(u.all("message/stream", answer("blue")))
		end.Products = end.Products[max(0, len(end.Products)-1):] // the gateway shows those of the question, too
		return end
	}, "blue"},
	{"cancel", func(u *wildUser, _ *wildAgent) wildEnd {
		other, end := *u, wildEnd{}
		err := u.until(func() bool {
			if u.task == "" || u.state != "working" {
				return false
			}
			end = other.end(other.all("tasks/cancel", site.Object{"id": u.task}))
			end.Products, end.Said = nil, nil // how far it came is a matter of time
			return true
		}, "message/stream", u.text("stream 600 100"))
		if err != nil {
			return u.end(err)
		}
		return end
	}, ""},
	{"failure", func(u *wildUser, _ *wildAgent) wildEnd {
		return u.end(u.all("message/stream", u.text("fail")))
	}, ""},
	{"failure of a send", func(u *wildUser, _ *wildAgent) wildEnd {
		err := u.all("message/send", u.text("fail"))
		u.artifacts = nil // some have shown a part of it
		return u.end(err)
	}, ""},
	{"600 KB", func(u *wildUser, _ *wildAgent) wildEnd {
		return u.end(u.all("message/stream", u.text("big 600")))
	}, "of 614400 bytes"},
	{"a message of 600 KB", func(u *wildUser, _ *wildAgent) wildEnd {
		return u.end(u.all("message/send", u.text("long "+strings.Repeat("y", 600<<10))))
	}, "of 6144"},
	{"conversation", func(u *wildUser, _ *wildAgent) wildEnd {
		var all wildEnd
		for range 3 {
			end := u.end(u.all("message/stream", u.text("recall")))
			all.Settled = append(all.Settled, end.Settled...)
			all.Products = append(all.Products, end.Products...)
			all.Said = append(all.Said, end.Said...)
			if all.Broken = end.Broken; all.Broken != "" {
				break
			}
		}
		return all
	}, "I see 3 of your messages"},
}

// wildCuts are what goes on while the connection to the agent is cut, and says nothing or much.
var wildCuts = []struct{ name, text, says string }{
	{"cut in a stream", "stream 60 100", "of 230 bytes"},
	{"silence of 50 s after a cut", "slow 50", "so I slept 50"},
}

// wildLed are deeds that a Leader of AIP has an agent do, too.
var wildLed = []struct{ name, deed, text string }{
	{"start by a Leader of AIP", "start", "hello"},
	{"question to a Leader of AIP", "question", "ask"},
	{"failure for a Leader of AIP", "failure", "fail"},
}

// runAgents has a user ask agents by A2A, directly and through one gateway, which is killed while they work.
func runAgents(t *testing.T, agents []wildAgent) {
	t.Helper()
	urls := make([][2]string, len(agents)) // of each that is asked directly, and of another one behind the gateway
	var starting sync.WaitGroup
	for i, a := range agents {
		for way := range urls[i] {
			path, args := site.SDKCommand(t, a.program...)
			starting.Go(func() { urls[i][way] = site.RunAgent(t, path, args...) })
		}
	}
	starting.Wait()
	port := site.FreePort(t)
	var sites strings.Builder
	fmt.Fprintf(&sites, "http://127.0.0.1:%d {\n", port)
	for i, a := range agents {
		fmt.Fprintf(&sites, "\taip_gateway /%s* %s %s {\n\t\tcallers aip aip/2 a2a\n\t\tidentity off\n\t}\n", a.Folder,
			cmp.Or(a.dialect, "a2a"), urls[i][1]+a.path)
	}
	sites.WriteString("}\n")
	c := site.Config{OtherSites: sites.String()}
	gateway := site.Serve(t, c)
	at := func(i int, through bool) string {
		if through {
			return fmt.Sprintf("http://127.0.0.1:%d/%s", port, agents[i].Folder)
		}
		return wildEndpoint(t, urls[i][0]+cmp.Or(agents[i].card, "/.well-known/agent-card.json"))
	}
	users := func(t *testing.T, i int) [2]*wildUser {
		return [2]*wildUser{newWildUser(t, at(i, false), agents[i].v1), newWildUser(t, at(i, true), agents[i].v1)}
	}

	cut := make([][][2]*wildUser, len(agents))
	var working sync.WaitGroup
	for i, a := range agents {
		for _, c := range wildCuts {
			pair := users(t, i)
			cut[i] = append(cut[i], pair)
			for _, u := range pair {
				working.Go(func() {
					begun := func() bool { return len(u.artifacts) > 0 || len(u.said) > 0 }
					if err := u.until(begun, "message/stream", u.text(c.text)); err != nil && !a.lacks(c.name) {
						t.Errorf("%s: %s: %v", a.Name, c.name, err)
					}
				})
			}
		}
	}
	working.Wait()
	gateway.Kill()
	gateway.Start(c)
	t.Run("cuts", func(t *testing.T) {
		t.Parallel()
		ends := make([][][2]wildEnd, len(agents))
		var waiting sync.WaitGroup
		for i := range agents {
			ends[i] = make([][2]wildEnd, len(wildCuts))
			for n, pair := range cut[i] {
				if agents[i].lacks(wildCuts[n].name) {
					continue
				}
				for way, u := range pair {
					waiting.Go(func() {
						err := u.rests(2 * site.Patience)
						if u.state != "completed" {
							u.artifacts = nil // how far it came is a matter of time
						}
						ends[i][n][way] = u.end(err)
					})
				}
			}
		}
		waiting.Wait()
		for i, a := range agents {
			for n, c := range wildCuts {
				if !a.lacks(c.name) {
					t.Run(a.Name+"/"+c.name, func(t *testing.T) { a.compare(t, c.name, c.says, ends[i][n]) })
				}
			}
		}
	})
	for i, a := range agents {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			for _, deed := range wildDeeds {
				if a.lacks(deed.name) {
					continue
				}
				t.Run(deed.name, func(t *testing.T) {
					var ends [2]wildEnd
					for way, u := range users(t, i) {
						ends[way] = deed.do(u, &a)
					}
					a.compare(t, deed.name, deed.says, ends)
				})
			}
			for _, led := range wildLed {
				if !a.lacks(led.deed) {
					t.Run(led.name, func(t *testing.T) {
						u := users(t, i)[0]
						a.compare(t, led.name, "", [2]wildEnd{u.led(led.text), ledAt(t, at(i, true), led.text)})
					})
				}
			}
		})
	}
}

// led is what a Leader of AIP must have of a stream that the user has: the artifacts, or else what the agent says last.
func (u *wildUser) led(text string) wildEnd {
	end := u.end(u.all("message/stream", u.text(text)))
	said := end.Said[max(0, len(end.Said)-1):]
	if end.Said = nil; end.Products == nil && end.Settled[0] == "completed" {
		end.Products = said
	} else if end.Settled[0] != "completed" {
		end.Said = said
	}
	end.Products, end.Said = textsOf(end.Products), textsOf(end.Said)
	return end
}

// textsOf leaves out what holds data, which Leaders by rule do not read.
func textsOf(all []string) (texts []string) {
	for _, one := range all {
		if one != "" && one[0] != '{' {
			texts = append(texts, one)
		}
	}
	return texts
}

// ledAt is what a Leader of AIP has of a task.
func ledAt(t *testing.T, mount, text string) wildEnd {
	l := newWildLeader(t, mount)
	if err := l.settledBy(l.stream("start", text, nil)); err != nil {
		l.end.Broken = err.Error()
	}
	for i, state := range l.end.Settled {
		l.end.Settled[i] = cmp.Or(inLegacy[state], state)
	}
	l.end.Products, l.end.Said = textsOf(l.end.Products), textsOf(l.end.Said)
	return l.end
}

func (a *wildAgent) lacks(deed string) bool {
	return slices.ContainsFunc(a.theirs, func(its wildTheirs) bool { return its.deed == deed && its.missing })
}

// compare checks that a user has through the gateway what it has directly, but for what is the agent's own.
func (a *wildAgent) compare(t *testing.T, deed, says string, ends [2]wildEnd) {
	t.Helper()
	want, known, notYet := [2]wildEnd{ends[0], ends[0]}, false, false
	for _, its := range a.theirs {
		if its.deed == deed && its.direct != nil {
			want, known = [2]wildEnd{*its.direct, *its.through}, true
		}
		notYet = notYet || its.deed == deed && its.notYet
	}
	switch diff := gocmp.Diff(want, ends); {
	case notYet && diff == "":
		t.Error("it works: its row and the page no longer need to say that it does not")
	case notYet:
		t.Logf("not yet (-want +got):\n%s", diff)
	case diff != "":
		t.Errorf("directly:\n%+v\nthrough the gateway:\n%+v", ends[0], ends[1])
	}
	if !known && !strings.Contains(fmt.Sprint(ends[0]), says) {
		t.Errorf("directly it does not say %q: %+v", says, ends[0])
	}
}

// row is the agent's row of docs/compatibility.md.
func (a *wildAgent) row(t *testing.T) string {
	t.Helper()
	works, set := "yes", "–"
	var own, later []string
	for _, its := range a.theirs {
		if its.notYet {
			later = append(later, its.deed)
		} else if !slices.Contains(own, its.why) {
			own = append(own, its.why)
		}
	}
	if len(later) > 0 {
		works = "not yet: " + strings.Join(later, ", ")
	}
	if a.path != "" {
		set = "`agent " + cmp.Or(a.dialect, "a2a") + " <url>" + a.path + "`"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", a.Name, a.Version(t), works, cmp.Or(strings.Join(own, "; "), "–"),
		set)
}

// TestWildAgentsPage: the page has the agents that are asked, in their order and in the versions that are pinned.
func TestWildAgentsPage(t *testing.T) {
	t.Parallel()
	rows := ""
	for _, a := range slices.Concat(wildAgentsInGo, wildAgentsByNpm) {
		rows += a.row(t)
	}
	site.WantTable(t, "Agents of A2A 0.3 and 1.0", rows)
}

// wildEndpoint returns where a client finds the endpoint of an agent, as its card says.
func wildEndpoint(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	site.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	site.NoError(t, err)
	card := gjson.ParseBytes(text)
	for _, one := range card.Get("supportedInterfaces").Array() {
		if one.Get("protocolBinding").Str == "JSONRPC" {
			return one.Get("url").Str
		}
	}
	return card.Get("url").Str
}
