// SPDX-License-Identifier: Apache-2.0

package bug_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bug"
)

// TestLog: the log has the reason and the stack, and nothing of a payload.
func TestLog(t *testing.T) {
	for name, tc := range map[string]struct {
		fail func()
		want string
	}{
		"a payload": {func() { panic("secret") }, "string"},
		"Go's own":  {func() { _ = []int{}[len("abc")] }, "runtime error: index out of range [3] with length 0"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			func() {
				defer func() {
					if p := recover(); p != nil {
						bug.Log(t.Context(), slog.New(slog.NewJSONHandler(&out, nil)), "it failed", p, slog.String("task", "t"))
					}
				}()
				tc.fail()
			}()
			var got map[string]string
			if err := json.Unmarshal(out.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(got["stack"], "bug_test.go") || strings.Contains(out.String(), "secret") {
				t.Errorf("the line is %s", out.String())
			}
			delete(got, "stack")
			delete(got, "time")
			want := map[string]string{"level": "ERROR", "msg": "it failed", "panic": tc.want, "task": "t"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
