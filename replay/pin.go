// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"strconv"
	"time"
)

// A log that has ended is kept longer than its retention while other logs pin it, up to Settings.PinFor. A log pins
// another one by a place in a list: so the pin is written with whatever its writer stores, and ends with its log.
// Where the store needs room (Settings.MaxSize, Capacity), logs that are pinned are dropped last.

// Pin returns the place in a list by which a log pins another one, whose name has fewer bytes than MaxName. after is
// the number of the last record that is not needed.
func Pin(log string, after uint64) Listing {
	return Listing{List: PinsOf(log), Label: strconv.FormatUint(after, 10)}
}

// PinsOf returns the name of the list of the logs that pin a log.
func PinsOf(log string) string { return "p" + log }

// maxPins is how many logs count that pin a log, so that the writer of that is not held up by any number of them.
const maxPins = 1000

// Pinned returns the number of the oldest record of a log after which records are needed by a log that pins it, and
// whether there is one.
func Pinned(ctx context.Context, s Store, log string) (after uint64, pinned bool, err error) {
	count := 0
	for l, err := range s.Listed(ctx, PinsOf(log), ListedLog{}) {
		if err != nil {
			return 0, false, err
		}
		if count++; count > maxPins {
			break
		}
		n, err := strconv.ParseUint(l.Label, 10, 64)
		if err != nil {
			return 0, false, err
		}
		if !pinned || n < after {
			after, pinned = n, true
		}
	}
	return after, pinned, nil
}

// pinCheck is how long after its retention it is looked at again whether a log is still pinned.
const pinCheck = time.Hour

// Postpone is for drivers. It returns when a log that has ended, is pinned and was to be dropped at a time, is to be
// looked at again instead; false if it is to be dropped all the same. A log whose time has not come is to be dropped
// because the store needs room: it then comes behind those that are not pinned, once.
func (s Settings) Postpone(ended, expires, now time.Time) (time.Time, bool) {
	last := ended.Add(s.PinFor)
	if next := now.Add(pinCheck); !expires.After(now) && next.Before(last) {
		return next, true
	}
	return last, last.After(expires)
}
