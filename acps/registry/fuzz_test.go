// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/acps/registry/registrytest"
)

// FuzzAgent: a read agent has an id, one line of comments, an AIC if it is approved, and an object as its ACS, if any.
func FuzzAgent(f *testing.F) {
	for _, name := range []string{"08-draft", "17-state-rejected"} {
		_, body := registrytest.Captured(f, name)
		f.Add([]byte(body))
	}
	f.Add([]byte(`{"id":"1","approval_status":"APPROVED","aic":" a.b ","acs":"{\"aic\":\"A.B\"}","is_active":true}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var a agent
		if json.Unmarshal(body, &a) != nil {
			return
		}
		e, err := a.entry()
		switch {
		case err != nil:
		case e.ID == "", e.Status == "", e.Status == Approved && e.AIC == "", e.Comments != printable(e.Comments),
			len(e.ACS) > 0 && e.ACS[0] != '{':
			t.Errorf("got %+v", e)
		}
	})
}

// keeps reads kept text, as left by a crash or a hand, and expects it to be the same after it was kept.
func keeps[T any](t *testing.T, text []byte) T {
	s := newMemory()
	s.kept["it"] = text
	got, err := load[T](t.Context(), s, "it")
	if err != nil {
		t.Fatal(err)
	}
	if err := store(t.Context(), s, "it", got); err != nil {
		return got // such as a time with a year of five digits
	}
	once := s.kept["it"]
	again, err := load[T](t.Context(), s, "it")
	if err == nil {
		err = store(t.Context(), s, "it", again)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(once), string(s.kept["it"])); diff != "" {
		t.Error(diff)
	}
	return got
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"current":{"id":"1","status":"approved","aic":"1.2"},
		"next":{"id":"2","status":"pending"},"former":["1"]}`))
	f.Add([]byte(`{"current":{"id":"1"`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := keeps[Record](t, text)
		r.take(&Entry{ID: "new", Status: Approved, AIC: "1.2.3"})
		if r.AIC() == "" {
			t.Errorf("got %+v", r)
		}
	})
}

func FuzzSession(f *testing.F) {
	f.Add([]byte(`{"token":"t","expires":"2026-11-26T08:00:00Z","refresh":"r"}`))
	f.Add([]byte(`{"asked":{"url":"https://login.example","user_code":"A","device_code":"d","every":5000000000}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s := keeps[session](t, text)
		if s.usable(s.Token, s.Expires.Add(-2*early)) {
			t.Error("a token that was refused is used")
		}
	})
}
