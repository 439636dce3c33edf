// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// filled returns a store with logs of all forms.
func filled(t *testing.T) Store {
	t.Helper()
	s := NewMemory(Settings{})
	t.Cleanup(func() { s.Close() })
	record := func(text string) [][]byte { return [][]byte{[]byte(text)} }
	due := time.Now().Add(time.Hour).In(time.FixedZone("", 8*60*60))
	many := make([][]byte, 2500)
	for i := range many {
		many[i] = []byte{byte(i), 0xff}
	}
	for _, a := range []Append{
		{Log: "ta\x00b\x00c", Records: [][]byte{[]byte(`t{"a":"<&\u2028>"}`), []byte("\x00\xff")}, Metadata: []byte("{}"),
			DueAt: Recover},
		{Log: "tended", Records: record("x"), Metadata: []byte("\xff"), End: true,
			Lists: []Listing{{List: "l\xff", At: due, Label: "\xfe"}, {List: "without a time"}}},
		{Log: "tintent", Metadata: []byte("begun"), DueAt: due, Intent: true},
		{Log: "tmany", Records: many, Metadata: []byte("m"), DueAt: due},
		{Log: "ttrimmed", Records: [][]byte{{'1'}, {'2'}, {'3'}}},
		{Log: "ttrimmed", Expect: 1, Records: record("4"), Trim: 2, Snapshot: []byte("s"), DueAt: due},
		{Log: "ttrimmed", Expect: 2, Records: record("15"), Skip: 10, DueAt: due, Metadata: []byte("gap")},
		{Log: "twhole", Records: [][]byte{{'1'}, {'2'}}},
		{Log: "twhole", Expect: 1, Trim: 2, Snapshot: []byte("all"), DueAt: due},
		{Log: "tfirst", Records: record("5"), Skip: 4},
	} {
		if err := s.Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestArchive exports a store and imports it into another one; the other then has the same logs.
func TestArchive(t *testing.T) {
	from := filled(t)
	var archive bytes.Buffer
	n, err := Export(t.Context(), from, &archive)
	if err != nil || n != (ArchiveCounts{Logs: 7, Records: 2507}) {
		t.Fatalf("%+v were exported: %v", n, err)
	}
	text := archive.String()
	if strings.Contains(text, "+08:00") {
		t.Error("the archive depends on the time zone in which a time is kept")
	}
	to := NewMemory(Settings{})
	defer to.Close()
	if got, err := Import(t.Context(), to, &archive); err != nil || got != n {
		t.Fatalf("%+v were imported: %v", got, err)
	}
	for entry, err := range from.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		h, snapshot, records, err := from.Load(t.Context(), entry.Log)
		h2, snapshot2, records2, err2 := to.Load(t.Context(), entry.Log)
		if err := errors.Join(err, err2); err != nil {
			t.Fatalf("%q: %v", entry.Log, err)
		}
		for i := range h2.Lists { // the same moment, in another time zone
			h2.Lists[i].At = h2.Lists[i].At.In(h.Lists[i].At.Location())
		}
		if h.Ended.IsZero() != h2.Ended.IsZero() || !h.DueAt.Equal(h2.DueAt) || h2.Ended.Before(h.Ended) {
			t.Errorf("%q: %+v became %+v", entry.Log, h, h2)
		}
		h.Ended, h.DueAt, h2.Ended, h2.DueAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}
		h.Revision, h2.Revision = 0, 0 // an import makes a log by other appends
		diff := cmp.Diff(h, h2, cmpopts.EquateEmpty()) + cmp.Diff(snapshot, snapshot2) + cmp.Diff(records, records2)
		if diff != "" {
			t.Errorf("%q (-exported +imported):\n%s", entry.Log, diff)
		}
	}

	if _, err := Import(t.Context(), to, strings.NewReader(text)); err == nil {
		t.Error("an import into a store that is not empty")
	}
	lines := strings.SplitAfter(text, "\n")
	for name, tt := range map[string]struct{ text, want string }{
		"nothing":            {"", "line 1 of the archive: EOF"},
		"something else":     {"{}\n", "this is no archive"},
		"a former version":   {`{"archive":"aip-gateway store","version":1}` + "\n", "of a development version"},
		"another version":    {`{"archive":"aip-gateway archive","version":2}` + "\n", "has the version 2"},
		"no end":             {strings.Join(lines[:4], ""), "cut off"},
		"half a line":        {text[:len(text)-5], "cut off"},
		"no JSON":            {lines[0] + "x\n", "line 2 of the archive: invalid"},
		"an empty line":      {lines[0] + "{}\n", "line 2 of the archive: it is no line"},
		"a record alone":     {lines[0] + lines[2], "out of order"},
		"a record twice":     {strings.Join(lines[:3], "") + lines[2], "out of order"},
		"a missing record":   {strings.Join(append(lines[:2:2], lines[3:]...), ""), "but there were"},
		"a record too many":  {lines[0] + `{"log":"t","first":1,"last":1}` + "\n" + `{"seq":2}` + "\n", "out of order"},
		"wrong counts":       {lines[0] + `{"end":{"logs":1,"records":0}}` + "\n", "but there were"},
		"a log with no name": {lines[0] + `{"log":"","first":1}` + "\n" + `{"end":{"logs":1}}` + "\n", "1 to 1024"},
	} {
		empty := NewMemory(Settings{})
		if _, err := Import(t.Context(), empty, strings.NewReader(tt.text)); err == nil ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q in it", name, err, tt.want)
		}
		empty.Close()
	}
}

// TestInspect counts logs, and collects their problems.
func TestInspect(t *testing.T) {
	s := filled(t)
	v, err := Inspect(t.Context(), s, nil)
	if err != nil || v.Logs != 7 || v.Ended != 1 || v.Records != 0 || v.Classes['t'] != 7 {
		t.Errorf("%+v, %v", v, err)
	}
	v, err = Inspect(t.Context(), s, func(log string, h Head, _ []byte, records []Record) error {
		if uint64(len(records)) != h.Kept() {
			t.Errorf("%q has %d records, %+v", log, len(records), h)
		}
		if log == "tmany" {
			return errors.New("odd")
		}
		return nil
	})
	if err != nil || v.Records != 2507 || v.Damaged != 1 || v.Problems[0].Log != "tmany" {
		t.Errorf("%+v, %v", v, err)
	}
}
