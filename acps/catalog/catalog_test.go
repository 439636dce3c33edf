// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/translate"
)

// TestEntries: agents are read at a request, once a minute for all requests. What cannot be read stays as it was,
// and what has not changed is the same entry.
func TestEntries(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		reads, card, fails := 0, &translate.Card{Name: "One"}, false
		agent := Agent{Name: "a",
			Card: func(context.Context) (*translate.Card, time.Time, error) {
				if reads++; fails {
					return nil, time.Time{}, errors.New("down")
				}
				return card, time.Unix(0, 0), nil
			},
			ACS: func(context.Context) ([]byte, error) { return []byte(card.Name), nil },
		}
		hangs := Agent{Name: "b", Card: func(ctx context.Context) (*translate.Card, time.Time, error) {
			<-ctx.Done()
			return nil, time.Time{}, ctx.Err()
		}}
		var c Catalog
		c.Set([]Agent{hangs, agent})
		if known := c.Known(); len(known) != 2 || known[0].Name != "a" || known[0].Card.Name != "" || reads != 0 {
			t.Errorf("before it is read, there is %+v", known[0])
		}
		left, leave := context.WithCancel(t.Context())
		leave() // the reading is for all who ask
		began := time.Now()
		first := c.Entries(left)[0]
		if first.Card != card || string(first.ACS) != "One" || time.Since(began) != wait {
			t.Errorf("it is read as %+v after %v", first, time.Since(began))
		}
		if again := c.Entries(t.Context()); again[0] != first || reads != 1 {
			t.Errorf("within a minute, it was read %d times", reads)
		}
		bubble.Pass(age)
		if same := c.Entries(t.Context()); same[0] != first || reads != 2 {
			t.Error("an agent that has not changed is another entry")
		}
		before := c.Known()
		if !Same(before, c.Entries(t.Context())) {
			t.Error("what has not changed is not the same")
		}
		card = &translate.Card{Name: "Two"}
		bubble.Pass(age)
		if changed := c.Entries(t.Context()); string(changed[0].ACS) != "Two" || Same(before, changed) {
			t.Errorf("a change is %s", changed[0].ACS)
		}
		fails = true
		c.Set([]Agent{agent}) // as a reload does
		kept := c.Entries(t.Context())
		if len(kept) != 1 || kept[0].Card != card || string(kept[0].ACS) != "Two" || reads != 4 {
			t.Errorf("an agent that is down is %+v", kept[0])
		}
	})
}
