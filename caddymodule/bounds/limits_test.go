// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"encoding/json"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf/conftest"
)

// TestDefaultBody: a body may have 20 MiB, as far as a Leader may hold the memory that this needs, and never less than
// it could before there was so much. What is set alone is never refused for what is not.
func TestDefaultBody(t *testing.T) {
	for _, c := range []struct {
		set       Limits
		body      int
		perLeader int64
	}{
		{Limits{Memory: 192 << 20}, 20 << 20, 48 << 20},
		{Limits{Memory: 64 << 20}, 8<<20 - 1, 16 << 20},
		{Limits{Memory: 24 << 20}, 4 << 20, 8<<20 + 2},
		{Limits{Memory: 192 << 20, Body: 30 << 20}, 30 << 20, 60<<20 + 2},
		{Limits{Memory: 192 << 20, Body: 1 << 20}, 1 << 20, 48 << 20},
	} {
		l := c.set
		l.FillDefaults()
		if l.Body != c.body || l.MemoryPerLeader() != c.perLeader || l.Check() != nil {
			t.Errorf("%+v: %+v, %v", c.set, l, l.Check())
		}
	}
}

// readLimits reads limits as Caddy does.
func readLimits(t *testing.T, text string) (*Limits, error) {
	t.Helper()
	l := new(Limits)
	if err := json.Unmarshal([]byte(text), l); err != nil {
		t.Fatal(err)
	}
	l.FillDefaults()
	return l, l.Check()
}

// TestDefaultLimits: what is not set follows from the memory that the process may have.
func TestDefaultLimits(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	for _, tc := range []struct {
		process int64
		text    string
		want    Limits
	}{
		{8 << 30, `{}`, Limits{20 << 20, 20_000, 1000, 100_000, 192 << 20}},
		{256 << 20, `{}`, Limits{8<<20 - 1, 20_000, 1000, 100_000, 64 << 20}},
		{256 << 20, `{"memory":167772160}`, Limits{20<<20 - 1, 20_000, 1000, 100_000, 160 << 20}},
		{8 << 30, `{"body":1,"streams":2,"streams_per_leader":3,"tasks_per_leader":4,"memory":8}`, Limits{1, 2, 3, 4, 8}},
	} {
		debug.SetMemoryLimit(tc.process)
		got, err := readLimits(t, tc.text)
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
		} else if diff := cmp.Diff(&tc.want, got); diff != "" {
			t.Errorf("%s of %d bytes (-want +got):\n%s", tc.text, tc.process, diff)
		}
	}
}

// TestLimitMistakes: what is said about each mistake.
func TestLimitMistakes(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(8 << 30))
	conftest.Refuses(t, map[string]string{
		`{"body":-1}`:               "limits: body is -1, but must not be negative",
		`{"streams":-1}`:            "limits: streams is -1, but must not be negative",
		`{"streams_per_leader":-2}`: "limits: streams_per_leader is -2, but must not be negative",
		`{"tasks_per_leader":-3}`:   "limits: tasks_per_leader is -3, but must not be negative",
		`{"memory":-4}`:             "limits: memory is -4, but must not be negative",
		`{"body":999,"memory":3999}`: "limits: memory is 3999 bytes, but must be at least 4000, four times the size of " +
			"body",
		// Four times such a size is no number.
		`{"body":9223372036854775807}`: "limits: memory is 201326592 bytes, but must be at least 4611686018427387908, " +
			"four times the size of body",
	}, func(text string) error {
		_, err := readLimits(t, text)
		return err
	})
}
