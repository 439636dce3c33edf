// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestAUNSearch calls every method of search.*.
func TestAUNSearch(t *testing.T) {
	t.Parallel()
	s := serveAUN(t)
	conn := s.Online("alice.aid.test")
	var found struct {
		Items []struct {
			AID string
			URL string `json:"agent_md_url"`
			SHA string `json:"agent_md_sha256"`
		}
	}
	s.Read(conn, "search.query", map[string]any{"q": "", "limit": 10}, &found)
	if len(found.Items) != 1 || found.Items[0].AID != site.AUNAgent ||
		found.Items[0].URL != "https://"+site.AUNAgent+"/agent.md" {
		t.Errorf("search.query: %+v", found)
	}
	s.Read(conn, "search.query", map[string]any{"q": "no such words anywhere", "limit": 10}, &found)
	if len(found.Items) != 0 {
		t.Errorf("search.query of other words: %+v", found)
	}
	var one struct {
		AID     string
		AgentMD string `json:"agent_md"`
		Type    string `json:"content_type"`
	}
	s.Read(conn, "search.get_agent", map[string]any{"aid": site.AUNAgent}, &one)
	if one.AID != site.AUNAgent || !strings.HasPrefix(one.AgentMD, "---\n") || one.Type != "text/markdown" {
		t.Errorf("search.get_agent: %+v", one)
	}
	_, err := conn.Call(s.Soon(), "search.get_agent", map[string]any{"aid": "none.aid.test"})
	s.Fails("search.get_agent of another", err, -32161)
	_, err = conn.Call(s.Soon(), "search.query", map[string]any{"q": 7})
	s.Fails("search.query of a number", err, -32162)
	var suggestions struct {
		Suggestions []struct{ Type, Value string }
	}
	s.Read(conn, "search.suggest", map[string]any{"prefix": "agent"}, &suggestions)
	if !strings.Contains(fmt.Sprint(suggestions), site.AUNAgent) {
		t.Errorf("search.suggest: %+v", suggestions)
	}
	var info struct {
		ID      string          `json:"ap_id"`
		Has     map[string]bool `json:"capabilities"`
		Version string          `json:"current_snapshot_version"`
		Head    string          `json:"change_cursor_head"`
	}
	s.Read(conn, "search.ap_info", nil, &info)
	if !info.Has["query"] || !info.Has["snapshot"] || !info.Has["changes"] || info.Version == "" {
		t.Errorf("search.ap_info: %+v", info)
	}
	var snapshot struct {
		Items []struct {
			AID string
			SHA string `json:"agent_md_sha256"`
		}
		HasMore bool `json:"has_more"`
	}
	s.Read(conn, "search.snapshot", map[string]any{"version": info.Version, "cursor": nil, "limit": 500}, &snapshot)
	if len(snapshot.Items) != 1 || snapshot.Items[0].AID != site.AUNAgent || len(snapshot.Items[0].SHA) != 64 {
		t.Errorf("search.snapshot: %+v", snapshot)
	}
	var changes struct {
		Changes []struct{ Op, AID string }
		Next    string `json:"next_cursor"`
	}
	s.Read(conn, "search.changes", map[string]any{"cursor": info.Head, "limit": 200}, &changes)
	if len(changes.Changes) != 0 {
		t.Errorf("search.changes after the head: %+v", changes)
	}
	_, err = conn.Call(s.Soon(), "search.changes", map[string]any{"cursor": "chg_of_another", "limit": 200})
	s.Fails("search.changes of another cursor", err, -32164)
}

// TestAUNPublic reads the public endpoints as SDKs do, each under its host.
func TestAUNPublic(t *testing.T) {
	t.Parallel()
	s := serveAUN(t)
	c := s.Client("alice.aid.test")
	c.URL = ""
	url := site.Must(c.Discover(s.Soon()))(t)
	if !regexp.MustCompile(`^wss://[a-z.]+(:\d+)?/aun$`).MatchString(url) {
		t.Errorf("discovery finds %q", url)
	}
	for _, host := range []string{site.AUNGateway, site.AUNAgent} {
		status, body, err := c.Get(s.Soon(), "https://"+host+"/.well-known/aun-gateway")
		if status != http.StatusOK || !strings.Contains(body, "wss://") || err != nil {
			t.Errorf("discovery at %s: %d %s %v", host, status, body, err)
		}
	}
	for path, want := range map[string]int{
		"/health": 200, "/pki/chain": 200, "/pki/cert/" + site.AUNGateway: 200, "/pki/cert/none.aid.test": 404,
	} {
		if status, body, err := c.Get(s.Soon(), "https://"+site.AUNGateway+path); status != want || err != nil {
			t.Errorf("%s: %d %s %v", path, status, body, err)
		}
	}
	status, md, err := c.Get(s.Soon(), "https://"+site.AUNAgent+"/agent.md")
	if status != http.StatusOK || err != nil || !strings.HasPrefix(md, "---\n") {
		t.Fatalf("agent.md: %d %s %v", status, md, err)
	}
	for _, field := range []string{"aid", "name", "type", "version", "description"} {
		if !regexp.MustCompile(`(?m)^` + field + `: .+`).MatchString(md) {
			t.Errorf("agent.md has no %s:\n%s", field, md)
		}
	}
	if len(md) > 6<<10 {
		t.Errorf("agent.md has %d bytes", len(md))
	}
	req := site.Must(http.NewRequestWithContext(s.Soon(), http.MethodHead, "https://"+site.AUNAgent+"/agent.md", nil))(t)
	res := site.Must(c.HTTP.Do(req))(t)
	res.Body.Close()
	tag := res.Header.Get("ETag")
	if res.StatusCode != http.StatusOK || tag == "" || res.ContentLength != int64(len(md)) {
		t.Errorf("HEAD: %s, ETag %q, %d bytes", res.Status, tag, res.ContentLength)
	}
	req = site.Must(http.NewRequestWithContext(s.Soon(), http.MethodGet, "https://"+site.AUNAgent+"/agent.md", nil))(t)
	req.Header.Set("If-None-Match", tag)
	res = site.Must(c.HTTP.Do(req))(t)
	res.Body.Close()
	if res.StatusCode != http.StatusNotModified {
		t.Errorf("with the ETag: %s", res.Status)
	}
}

// TestAUNMessages calls every method of message.*: a conversation with the agent, and messages between two clients.
func TestAUNMessages(t *testing.T) {
	t.Parallel()
	s := serveAUN(t)
	alice, bob := s.Online("alice.aid.test"), s.Online("bob.aid.test")

	t.Run("a conversation", func(t *testing.T) {
		said := func(until string) (all string) {
			for !strings.Contains(all, until) {
				f := site.Must(alice.Event(s.Soon(), func(f aunpeer.Frame) bool {
					return f.Method == "event/message.received"
				}))(t)
				var p struct {
					From    string
					Payload aunpeer.Payload
				}
				if err := json.Unmarshal(f.Params, &p); err != nil || p.From != site.AUNAgent ||
					p.Payload.ThreadID != "thread-1" {
					t.Fatalf("%s: %v", f.Params, err)
				}
				all += p.Payload.Event + p.Payload.Text + " | "
			}
			return all
		}
		say := func(text string) {
			site.Must(alice.Call(s.Soon(), "message.send", map[string]any{
				"to": site.AUNAgent, "payload": aunpeer.Payload{Type: "text", Text: text, ThreadID: "thread-1"},
			}))(t)
		}
		say("ask")
		said("which colour?")
		say("blue")
		if all := said("task.completed"); !strings.Contains(all, "you said: blue") {
			t.Errorf("it said %s", all)
		}
	})
	t.Run("refusals", func(t *testing.T) {
		for what, c := range map[string]struct {
			method string
			params map[string]any
			want   int
		}{
			"no recipient": {"message.send", map[string]any{"payload": map[string]any{"type": "text"}}, -32602},
			"no payload":   {"message.send", map[string]any{"to": site.AUNAgent}, -32602},
			"a payload that is a number": {"message.send", map[string]any{"to": site.AUNAgent, "payload": 7},
				-32602},
			"another device": {"message.pull", map[string]any{"device_id": "another"}, -32602},
			"an ack of no number": {"message.ack", map[string]any{"seq": "x"},
				-32602},
		} {
			_, err := alice.Call(s.Soon(), c.method, c.params)
			s.Fails(what, err, c.want)
		}
	})
	t.Run("online", func(t *testing.T) {
		var got struct{ Online map[string]bool }
		s.Read(alice, "message.query_online", map[string]any{
			"aids": []string{"bob.aid.test", "none.aid.test", site.AUNAgent},
		}, &got)
		if !got.Online["bob.aid.test"] || got.Online["none.aid.test"] || !got.Online[site.AUNAgent] {
			t.Errorf("online: %+v", got)
		}
	})
	t.Run("pull and ack", func(t *testing.T) {
		var page struct {
			Messages []struct {
				Seq  int
				From string
			}
			Count  int
			Latest int `json:"latest_seq"`
		}
		s.Read(alice, "message.pull", map[string]any{"after_seq": 0, "limit": 200}, &page)
		if page.Count == 0 || page.Count != len(page.Messages) || page.Messages[0].From != site.AUNAgent {
			t.Fatalf("pulled: %+v", page)
		}
		for i, m := range page.Messages {
			if i > 0 && m.Seq <= page.Messages[i-1].Seq {
				t.Errorf("the messages are not in order: %+v", page)
			}
		}
		var ack struct {
			Success bool
			Seq     int `json:"ack_seq"`
		}
		s.Read(alice, "message.ack", map[string]any{"seq": page.Latest}, &ack)
		if !ack.Success || ack.Seq != page.Latest {
			t.Errorf("acknowledged: %+v", ack)
		}
		s.Read(alice, "message.ack", map[string]any{"seq": 1}, &ack)
		if ack.Seq != page.Latest {
			t.Errorf("an ack moved back: %+v", ack)
		}
	})
	t.Run("recall", func(t *testing.T) {
		var sent struct {
			ID string `json:"message_id"`
		}
		s.Read(alice, "message.send", map[string]any{
			"to": "bob.aid.test", "payload": aunpeer.Payload{Type: "text", Text: "a mistake"},
		}, &sent)
		arrives := func(method string) {
			t.Helper()
			site.Must(bob.Event(s.Soon(), func(f aunpeer.Frame) bool {
				return f.Method == method && strings.Contains(string(f.Params), sent.ID)
			}))(t)
		}
		arrives("event/message.received")
		for _, c := range []struct {
			by       *aunpeer.Conn
			id       string
			recalled int
			why      string
		}{
			{bob, "none", 0, "not_found"}, {bob, sent.ID, 0, "not_sender"}, {alice, sent.ID, 1, ""},
			{alice, sent.ID, 0, "already_recalled"},
		} {
			var got struct {
				Accepted, Recalled int
				Errors             []struct {
					ID    string `json:"message_id"`
					Error string
				}
			}
			s.Read(c.by, "message.recall", map[string]any{"message_ids": []string{c.id}}, &got)
			if got.Accepted != 1 || got.Recalled != c.recalled || len(got.Errors) != 1-c.recalled ||
				len(got.Errors) == 1 && (got.Errors[0].Error != c.why || got.Errors[0].ID != c.id) {
				t.Errorf("recalled: %+v, want %q", got, c.why)
			}
		}
		arrives("event/message.recalled")
		left := site.Must(bob.Call(s.Soon(), "message.pull", map[string]any{"after_seq": 0, "limit": 200}))(t)
		if strings.Contains(string(left), "a mistake") {
			t.Errorf("a recalled message is pulled: %s", left)
		}
	})
}

// TestAUNMeta calls meta.status and meta.trust_roots after the login.
func TestAUNMeta(t *testing.T) {
	t.Parallel()
	s := serveAUN(t)
	conn := s.Online("alice.aid.test")
	var status struct {
		Mode, AID, Role string
		Since           int64  `json:"connected_at"`
		Version         string `json:"protocol_version"`
	}
	s.Read(conn, "meta.status", nil, &status)
	if status.Mode != "gateway" || status.AID != "alice.aid.test" || status.Role != "user" || status.Since == 0 ||
		status.Version != "1.0" {
		t.Errorf("meta.status: %+v", status)
	}
	var list struct {
		Version int64
		Next    string `json:"next_update"`
		Roots   []struct {
			Certificate string
			Fingerprint string `json:"fingerprint_sha256"`
			Status      string
		} `json:"root_cas"`
	}
	s.Read(conn, "meta.trust_roots", nil, &list)
	sum := sha256.Sum256(s.PKI.Root.Chain[0].Raw)
	if list.Version == 0 || list.Next == "" || len(list.Roots) != 1 || list.Roots[0].Status != "active" ||
		list.Roots[0].Certificate != s.PKI.Root.CertPEM() || list.Roots[0].Fingerprint != hex.EncodeToString(sum[:]) {
		t.Errorf("meta.trust_roots: %+v", list)
	}
	_, err := conn.Call(s.Soon(), "meta.none", nil)
	s.Fails("meta.none", err, -32601)
}
