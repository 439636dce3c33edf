// SPDX-License-Identifier: Apache-2.0

package translatetest

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

// mark is in the metadata of an item with data other than an object.
const mark = "data_part_compat"

// Value returns a random value of JSON. Objects with the only member "value" are frequent, because other values are
// kept in such.
func Value(rnd *rand.Rand, depth int) any {
	n := rnd.IntN(9)
	if depth == 0 {
		n = rnd.IntN(5)
	}
	switch n {
	case 0:
		return nil
	case 1:
		return rnd.IntN(2) == 0
	case 2:
		return float64(rnd.IntN(2000)-1000) / 4
	case 3, 4:
		list := []string{"", "value", "北京 \"\\", mark}
		return list[rnd.IntN(len(list))]
	case 5:
		var list []any
		for range rnd.IntN(3) {
			list = append(list, Value(rnd, depth-1))
		}
		return append([]any{}, list...)
	case 6:
		object := map[string]any{}
		for range rnd.IntN(3) {
			object[[]string{"a", "value", mark, "data"}[rnd.IntN(4)]] = Value(rnd, depth-1)
		}
		return object
	}
	return map[string]any{"value": Value(rnd, depth-1)}
}

// Metadata returns random metadata of an item, nil for none.
func Metadata(rnd *rand.Rand) map[string]any {
	metadata := map[string]any{}
	if rnd.IntN(3) == 0 {
		metadata["k"] = Value(rnd, 1)
	}
	if rnd.IntN(3) == 0 {
		metadata["a2a"] = Value(rnd, 1)
	}
	if len(metadata) == 0 {
		return nil
	}
	return metadata
}

// Marked returns metadata with the mark of data other than an object.
func Marked(metadata map[string]any) map[string]any {
	with := map[string]any{mark: true}
	for name, v := range metadata {
		with[name] = v
	}
	return with
}

// AsJSON returns v as JSON, and nothing for an empty map.
func AsJSON(v any) json.RawMessage {
	if m, ok := v.(map[string]any); ok && m == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// SameJSON fails the test if two texts are not the same value of JSON.
func SameJSON(t *testing.T, want, got []byte) {
	t.Helper()
	var a, b any
	if len(want) > 0 {
		if err := json.Unmarshal(want, &a); err != nil {
			t.Fatalf("%v: %s", err, want)
		}
	}
	if len(got) > 0 {
		if err := json.Unmarshal(got, &b); err != nil {
			t.Fatalf("%v: %s", err, got)
		}
	}
	if d := cmp.Diff(a, b); d != "" {
		t.Fatalf("%s has become %s (-want +got):\n%s", want, got, d)
	}
}

// DataItem returns the data item of a random value.
func DataItem(rnd *rand.Rand) task.DataItem {
	v, metadata := Value(rnd, 3), Metadata(rnd)
	// If a sender uses the name of a family, all of its metadata is a member of it.
	if _, used := metadata["a2a"]; used {
		metadata = map[string]any{"a2a": map[string]any{"metadata": metadata}}
	}
	if _, ok := v.(map[string]any); !ok {
		v, metadata = map[string]any{"value": v}, Marked(metadata)
	}
	return task.DataItem{Kind: task.DataKind, Data: AsJSON(v), Metadata: AsJSON(metadata)}
}

// data: structured data of any value is the same item at the other end, in both directions, and no codec takes an
// object for a value or a value for an object.
func data(t *testing.T, c translate.Client, s translate.Server) {
	for seed := range uint64(2000) {
		it := DataItem(rand.New(rand.NewPCG(seed, 1)))
		turn := agent.Turn{Ref: agent.Ref{Task: "t-1", Session: "s-1"}, Message: task.Message{
			ID: "m-1", SenderRole: task.Leader, SenderID: "leader", Command: task.Start,
			DataItems: []task.DataItem{it}}}
		call, err := received(c, s, translate.Send, turn.Ref, c.AppendTurn(nil, &turn, false))
		if err != nil {
			t.Fatalf("%s is refused: %v", it.Data, err)
		}
		sameItem(t, &it, call.Message.DataItems)

		tk := answered(task.Working, "")
		tk.Products[0].DataItems = []task.DataItem{it}
		rep, err := c.Reply(s.AppendTask(nil, jsonrpc.ID("1"), new(translate.Call), &tk), nil)
		if err != nil || len(rep.Products) != 1 {
			t.Fatalf("%s is refused: %+v %v", it.Data, rep, err)
		}
		sameItem(t, &it, rep.Products[0].DataItems)
	}
}

func sameItem(t *testing.T, want *task.DataItem, got []task.DataItem) {
	t.Helper()
	if len(got) != 1 || got[0].Kind != task.DataKind {
		t.Fatalf("%s has become %+v", want.Data, got)
	}
	SameJSON(t, want.Data, got[0].Data)
	SameJSON(t, want.Metadata, got[0].Metadata)
}
