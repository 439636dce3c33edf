// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
)

// sized is a store with files.
type sized struct{ *replay.Memory }

func (sized) DiskBytes() int64 { return 4096 }

// TestOf: a store is counted by kinds; what is damaged in tasks is found when all is read, and not else.
func TestOf(t *testing.T) {
	store := sized{replay.NewMemory(replay.Settings{})}
	defer store.Close()
	task := func(name string) string { return string(logname.Task) + "P" + logname.Separator + name }
	for log, a := range map[string]replay.Append{
		task("bad metadata"):            {Metadata: []byte("{")},
		task("bad record"):              {Metadata: []byte("{}"), Records: [][]byte{{0xff, 1, 2}}},
		string(logname.Outbox) + "o":    {Records: [][]byte{{0xff}}}, // only its writer knows what it means
		string(rune('?')) + "of others": {Records: [][]byte{{1}}},
	} {
		a.Log = log
		if err := store.Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	brief, err := Of(t.Context(), store, false)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"task": 2, "outbox": 1, `class_'?'`: 1}
	if diff := cmp.Diff(want, brief.Kinds); diff != "" || brief.Size != 4096 || brief.Logs != 4 || brief.Damaged != 0 {
		t.Errorf("in brief %+v (-want +got):\n%s", brief, diff)
	}
	full, err := Of(t.Context(), store, true)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]adminapi.StoreProblem)
	for _, p := range full.Problems {
		found[p.Log] = p
	}
	if full.Damaged != 2 || len(found) != 2 || found["P bad metadata"].Error != "the metadata of the task are damaged" ||
		found["P bad record"].Kind != "task" {
		t.Errorf("of all %+v", full)
	}
}

// TestNameOf: people read the parts of a name with spaces between them.
func TestNameOf(t *testing.T) {
	kind, name := NameOf(string(logname.Endpoint) + "a" + logname.Separator + "b")
	if kind != "endpoint" || name != "a b" {
		t.Errorf("%s %s", kind, name)
	}
}
