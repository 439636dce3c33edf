// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
)

// Survey is the content of a store.
type Survey struct {
	Logs, Ended int
	Bytes       int64        // of the records kept
	Classes     map[byte]int // logs, by the first byte of their names
	Records     int          // that were read; 0 if only heads were read
	Problems    []LogProblem // the first ones found, at most maxProblems
	Damaged     int          // number of problems
}

// LogProblem is a log with its error.
type LogProblem struct {
	Log string
	Err error
}

// maxProblems is the greatest number of problems named in a Survey.
const maxProblems = 100

// Inspect counts the logs of a store. The store may be in use. With check, it also reads all of each log and calls
// check with it; an error of check is a problem of the log, and so is unreadable data of the log. It holds one log at a
// time in memory. The error is the one of a store unreadable from there on.
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
