// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble"
	"github.com/aip-gateway/aip-gateway/task"
)

// BenchmarkSettled measures a get of a task whose turn has settled, after some turns.
func BenchmarkSettled(b *testing.B) {
	stores := map[string]func(*testing.B) replay.Store{
		"memory": func(*testing.B) replay.Store { return replay.NewMemory(replay.Settings{}) },
		"pebble": func(b *testing.B) replay.Store {
			s, err := pebble.Open(b.TempDir(), replay.Settings{}, nil)
			if err != nil {
				b.Fatal(err)
			}
			return s
		},
	}
	for name, open := range stores {
		for _, turns := range []int{1, 20} {
			b.Run(fmt.Sprintf("%s/turns=%d", name, turns), func(b *testing.B) {
				store := open(b)
				defer store.Close()
				e, err := Open(b.Context(), store, Options{})
				if err != nil {
					b.Fatal(err)
				}
				defer e.Close()
				p := e.Register(Config{Name: "agent", Agent: answers(strings.Repeat("hello ", 100)), Terms: terms, MaxEvents: 1000,
					MaxBytes: 1 << 20, Log: slog.New(slog.DiscardHandler)})
				defer p.Unregister()
				for i := range turns {
					c := call(task.Start, "t1")
					if i > 0 {
						c = call(task.Continue, "t1")
						c.Message.ID = ""
					}
					if _, err := p.Do(b.Context(), leader, c); err != nil {
						b.Fatal(err)
					}
				}
				get := call(task.Get, "t1")
				b.ReportAllocs()
				for b.Loop() {
					if _, err := p.Do(b.Context(), leader, get); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
