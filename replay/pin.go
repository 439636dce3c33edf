// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"strconv"
	"time"
)

// An ended log is kept longer than its retention while other logs pin it, up to Settings.PinFor. A log pins another one
// by a place in a list: so the pin is written with its writer's other data, and ends with its log. If the store needs
// room (Settings.MaxSize, Capacity), pinned logs are dropped last.

// Pin returns the place in a list for a log to pin another one. The name of the other has fewer bytes than MaxName.
// after is the number of the last unneeded record.
func Pin(log string, after uint64) Listing {
	return Listing{List: PinsOf(log), Label: strconv.FormatUint(after, 10)}
}

// PinsOf returns the name of the list of the logs pinning a log.
func PinsOf(log string) string { return "p" + log }

// maxPins is the greatest number of pins of a log that count, so its writer is not held up by any number of them.
const maxPins = 1000

// Pinned returns the number of the oldest record of a log after which a log pinning it needs records, and whether there
// is one.
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

// pinCheck is the time after the retention of a log to its next check for pins.
const pinCheck = time.Hour

// Postpone is for drivers. An ended and pinned log was to be dropped at a time. Postpone returns the time to look at it
// again instead; false if it is to be dropped all the same. A log before its time is to be dropped because the store
// needs room: it then comes behind those not pinned, once.
func (s Settings) Postpone(ended, expires, now time.Time) (time.Time, bool) {
	last := ended.Add(s.PinFor)
	if next := now.Add(pinCheck); !expires.After(now) && next.Before(last) {
		return next, true
	}
	return last, last.After(expires)
}
