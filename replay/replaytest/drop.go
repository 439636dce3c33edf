// SPDX-License-Identifier: Apache-2.0

package replaytest

import (
	"errors"
	"fmt"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// testDrop drops logs that have not ended: nothing of them is left, their names are free, and no other log makes room
// for them.
func testDrop(e *env) {
	s := e.store(replay.Settings{Retention: time.Hour, MaxSize: 4 << 10})
	r := numbered("r", 1, 40)
	kept := replay.Head{First: 1, Last: 1, Bytes: size(r[:1]), Ended: time.Now()}
	e.append(s, replay.Append{Log: "kept", Records: data(r[:1]), End: true})
	at := time.Unix(1_800_000_000, 0)
	for round := range e.times(200) {
		log := "d" + fmt.Sprint(round%5)
		switch round % 5 {
		case 0:
			e.append(s, replay.Append{Log: log, Metadata: []byte("m"), DueAt: at, Durable: true})
		case 1:
			e.append(s, replay.Append{Log: log, Metadata: []byte("m"), DueAt: replay.Recover, Intent: true})
		case 2:
			e.append(s, replay.Append{Log: log, Records: data(r[:3]), DueAt: at})
		case 3:
			for i := range r {
				e.append(s, replay.Append{Log: log, Records: data(r[i : i+1]), Metadata: make([]byte, 100)})
			}
			e.append(s, replay.Append{Log: log, Trim: 10, Snapshot: []byte("snapshot")})
		}
		if round == 8 { // a waiting reader is woken
			reader := s.Read(log, 40)
			if _, _, err := reader.Next(e.Context(), nil); err != nil {
				e.Error(err)
			}
			woken := make(chan struct{})
			reader.Wake(func() { close(woken) })
			e.append(s, replay.Append{Log: log, Drop: true})
			<-woken
			if _, _, err := reader.Next(e.Context(), nil); !errors.Is(err, replay.ErrNotFound) {
				e.Errorf("a reader of a log that was dropped: %v", err)
			}
			reader.Close()
		} else {
			e.append(s, replay.Append{Log: log, Drop: true})
		}
		e.wantNotFound(s, log)
	}
	e.wantDue(s, 'd', replay.Recover, replay.EndOfTime)
	e.wantList(s, "d", "")
	e.wantLoad(s, "kept", state{kept, nil, r[:1]})
	for _, a := range []replay.Append{{Log: "kept", Expect: 1, Drop: true}, {Log: "none", Expect: 1, Drop: true}} {
		if err := s.Append(e.Context(), a); !errors.Is(err, replay.ErrConflict) {
			e.Errorf("a drop of %s after 1: %v, want ErrConflict", a.Log, err)
		}
	}
	e.append(s, replay.Append{Log: "d3", Records: data(r[:2])})
	e.wantLoad(s, "d3", state{replay.Head{First: 1, Last: 2, Bytes: size(r[:2])}, nil, r[:2]})
}
