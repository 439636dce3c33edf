// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"context"
	"io"
	"iter"
)

// A Reader reads the records of one log, oldest first, and then waits for new ones. It never skips a record. Any number
// of readers may read one log, and none of them delays the writer. One goroutine at a time uses a Reader.
type Reader interface {
	// Next returns the next records, all available at once up to a page, and whether more follow without waiting. The
	// records are valid until the next call of a method of the Reader. No records and a nil error mean nothing to read
	// now: the reader has caught up, or had begun when the store became unavailable.
	//
	// The error is io.EOF if the log has ended and all its records were read; a *CompactedError if the next record is no
	// longer kept, or if Append.Skip left out the reader's number; a *FutureError if this number is beyond the last
	// record; ErrNotFound if the log does not exist; ErrClosed if the store is closed; and the error of ctx when ctx is
	// done.
	//
	// A driver copying large records calls reserve before it does. reserve may be nil.
	Next(ctx context.Context, reserve Reserve) (records []Record, more bool, err error)

	// Wake has f called once, as soon as Next has something to return: a record, an error, or the end of the log. If there
	// is something already, Wake calls f itself. Otherwise the appending goroutine calls it, after the append has become
	// visible, with no lock of the store held. f must not wait. It may be called although Next then returns nothing.
	// Another call of Wake replaces f, and nil takes it back; an f being called meanwhile is not waited for.
	Wake(f func())

	// Alone reports whether the append calling the function of Wake wakes no other reader of the log. It is for that
	// function: if alone, it may take a little time, as long as an append takes, but must not wait all the same.
	Alone() bool

	// Rewind drops the records last returned by Next, and has it return those after a number again: the number of one of
	// these records, or of the one before them. So a waiting reader holds none of them.
	Rewind(after uint64)

	// Close ends the use of the Reader.
	Close()
}

// Follow yields the records of a log after a number, oldest first. It then waits for new records, until the log has
// ended or ctx is done. After 0 comes the first record. The errors are those of Reader.Next, but for io.EOF: the end of
// the log is not an error. A record is valid until the next one is yielded.
func Follow(ctx context.Context, s Store, log string, after uint64, reserve Reserve) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		reader := s.Read(log, after)
		defer reader.Close()
		news := make(chan struct{}, 1)
		wake := func() {
			select {
			case news <- struct{}{}:
			default:
			}
		}
		for {
			records, more, err := reader.Next(ctx, reserve)
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(Record{}, err)
				return
			}
			for i, r := range records {
				if err := ctx.Err(); err != nil {
					yield(Record{}, err)
					return
				}
				r.More = more || i < len(records)-1
				if !yield(r, nil) {
					return
				}
			}
			if len(records) > 0 {
				continue
			}
			reader.Wake(wake)
			select {
			case <-news:
			case <-ctx.Done():
			}
		}
	}
}

// ReadOne returns a copy of one record. The errors are those of Reader.Next; a missing record, or one not there yet, is
// ErrNotFound, if nothing else is the matter.
func ReadOne(ctx context.Context, s Store, log string, seq uint64) ([]byte, error) {
	reader := s.Read(log, seq-1)
	defer reader.Close()
	records, _, err := reader.Next(ctx, nil)
	switch {
	case err != nil && err != io.EOF:
		return nil, err
	case len(records) == 0 || records[0].Seq != seq:
		return nil, ErrNotFound
	}
	return bytes.Clone(records[0].Data), nil
}
