// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestCursor: a cursor that is a number is one in JSON, and any other is a text.
func TestCursor(t *testing.T) {
	for cursor, want := range map[Cursor]string{"7": "7", "0": "0", "east!7": `"east!7"`, "": `""`, "-1": `"-1"`} {
		text, err := json.Marshal(cursor)
		if err != nil || string(text) != want {
			t.Errorf("%q is %s, %v", cursor, text, err)
		}
		var back Cursor
		if err := json.Unmarshal(text, &back); err != nil || back != cursor {
			t.Errorf("%s is read as %q, %v", text, back, err)
		}
	}
}

// TestRoutes: each route stands once, below /aip/, with methods and parameters that can be asked for; and each command
// stands once.
func TestRoutes(t *testing.T) {
	paths, commands := make(map[string]bool), make(map[string]bool)
	for _, r := range Routes {
		if paths[r.Path] || !strings.HasPrefix(r.Path, "/aip/") || RouteOf(r.Path) == nil {
			t.Errorf("%s stands twice, or not below /aip/", r.Path)
		}
		paths[r.Path] = true
		for method := range strings.SplitSeq(r.Method, ", ") {
			if !slices.Contains([]string{"GET", "HEAD", "POST", "DELETE"}, method) {
				t.Errorf("%s has the method %q", r.Path, method)
			}
		}
		if r.Console != "" && r.Console != MayRead && !slices.Contains(Permissions(), r.Console) {
			t.Errorf("%s needs the permission %q", r.Path, r.Console)
		}
		for _, c := range r.Commands {
			if commands[c.Name] || c.Short == "" || c.Long == "" {
				t.Errorf("the command %s stands twice, or has no help", c.Name)
			}
			commands[c.Name] = true
		}
	}
	if RouteOf("/aip/none") != nil {
		t.Error("there is a route that is in no table")
	}
}

// TestRefuse: an error is JSON with a status.
func TestRefuse(t *testing.T) {
	w := httptest.NewRecorder()
	Refuse(w, 409, `say "which"`)
	if got := strings.TrimSpace(w.Body.String()); w.Code != 409 || got != `{"error":"say \"which\""}` ||
		w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %s", w.Code, got)
	}
}
