// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
)

// Survey is what a store has.
type Survey struct {
	Logs, Ended int
	Bytes       int64        // of the records kept
	Classes     map[byte]int // logs, by the first byte of their names
	Records     int          // that were read; 0 if only heads were
	Problems    []LogProblem // the first ones found, at most maxProblems
	Damaged     int          // how many problems there are
}

// LogProblem is what is wrong with a log.
type LogProblem struct {
	Log string
	Err error
}

// maxProblems is how many problems a Survey names.
const maxProblems = 100

// Inspect counts the logs of a store, which may be in use. With check, it also reads all of each log and calls check
// with it; what that returns is a problem of the log, and so is what the store cannot read. It holds one log at a time
// in memory. The error is that of a store that cannot be read further.
func Inspect(
	ctx context.Context, s Store, check func(log string, h Head, snapshot []byte, records []Record) error,
) (v Survey, err error) {
	v.Classes = make(map[byte]int)
	for entry, err := range s.List(ctx, "", "") {
		if err != nil {
			return v, err
		}
		v.Logs++
		v.Classes[entry.Log[0]]++
		v.Bytes += entry.Head.Bytes
		if !entry.Head.Ended.IsZero() {
			v.Ended++
		}
		if check == nil {
			continue
		}
		h, snapshot, records, err := s.Load(ctx, entry.Log)
		if errors.Is(err, ErrNotFound) {
			continue // it was dropped meanwhile
		}
		if errors.Is(err, ErrUnavailable) || errors.Is(err, ErrClosed) || ctx.Err() != nil {
			return v, err
		}
		if err == nil {
			v.Records += len(records)
			err = check(entry.Log, h, snapshot, records)
		}
		if err == nil {
			continue
		}
		if v.Damaged++; len(v.Problems) < maxProblems {
			v.Problems = append(v.Problems, LogProblem{entry.Log, err})
		}
	}
	return v, nil
}
