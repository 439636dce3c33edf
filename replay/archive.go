// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"
)

// An archive is a store as lines of JSON, readable by any version of any driver. Its first line names it. Then comes,
// for each log, a line with its head and one for each record, and at the end a line with their numbers.
const (
	archiveName    = "aip-gateway archive"
	archiveVersion = 1
)

// maxArchiveLine is the largest size of a line of an archive, in bytes.
const maxArchiveLine = 512 << 20

// archiveLine is a line of an archive. The names of the members are stored.
type archiveLine struct {
	Archive string `json:"archive,omitempty"` // in the first line: archiveName
	Version int    `json:"version,omitempty"` // likewise: archiveVersion

	Log      *archiveBytes `json:"log,omitempty"`   // the name of the log of this line
	First    uint64        `json:"first,omitempty"` // number of the oldest record kept
	Last     uint64        `json:"last,omitempty"`  // number of the newest record
	DueAt    time.Time     `json:"due_at,omitzero"`
	Ended    time.Time     `json:"ended,omitzero"`
	Metadata archiveBytes  `json:"metadata,omitempty"`
	Snapshot archiveBytes  `json:"snapshot,omitempty"` // of the records before First

	Lists []archiveListing `json:"lists,omitempty"`

	Seq  uint64       `json:"seq,omitempty"` // the number of a record of the log of the line before
	Data archiveBytes `json:"data,omitempty"`

	End *ArchiveCounts `json:"end,omitempty"` // in the last line
}

// archiveListing is a Listing.
type archiveListing struct {
	List  archiveBytes `json:"list"`
	At    time.Time    `json:"at,omitzero"`
	Label archiveBytes `json:"label,omitempty"`
}

// ArchiveCounts are the numbers of logs and records in an archive.
type ArchiveCounts struct {
	Logs    int `json:"logs"`
	Records int `json:"records"`
}

// archiveBytes are a string in JSON, or {"base64": "…"} if they are not UTF-8.
type archiveBytes []byte

// MarshalJSON implements json.Marshaler.
func (b archiveBytes) MarshalJSON() ([]byte, error) {
	if utf8.Valid(b) {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		err := e.Encode(string(b))
		return text.Bytes(), err
	}
	return fmt.Appendf(nil, `{"base64":%q}`, base64.StdEncoding.EncodeToString(b)), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *archiveBytes) UnmarshalJSON(data []byte) error {
	if data[0] == '{' {
		var encoded struct {
			Base64 []byte `json:"base64"`
		}
		err := json.Unmarshal(data, &encoded)
		*b = encoded.Base64
		return err
	}
	var text string
	err := json.Unmarshal(data, &text)
	*b = archiveBytes(text)
	return err
}

// Export writes an archive of a store. The store may be in use: each log is in it as it is at some time meanwhile. It
// holds one log at a time in memory.
func Export(ctx context.Context, s Store, w io.Writer) (n ArchiveCounts, err error) {
	out := bufio.NewWriterSize(w, 64<<10)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	if err := e.Encode(archiveLine{Archive: archiveName, Version: archiveVersion}); err != nil {
		return n, err
	}
	for entry, err := range s.List(ctx, "", "") {
		if err != nil {
			return n, err
		}
		h, snapshot, records, err := s.Load(ctx, entry.Log)
		if errors.Is(err, ErrNotFound) {
			continue // it was dropped meanwhile
		}
		if err != nil {
			return n, fmt.Errorf("the log %q: %w", entry.Log, err)
		}
		name := archiveBytes(entry.Log)
		line := archiveLine{Log: &name, First: h.First, Last: h.Last, DueAt: h.DueAt.UTC(), Ended: h.Ended.UTC(),
			Metadata: h.Metadata, Snapshot: snapshot}
		for _, l := range h.Lists {
			line.Lists = append(line.Lists, archiveListing{archiveBytes(l.List), l.At.UTC(), archiveBytes(l.Label)})
		}
		if err := e.Encode(line); err != nil {
			return n, err
		}
		for _, r := range records {
			if err := e.Encode(archiveLine{Seq: r.Seq, Data: r.Data}); err != nil {
				return n, err
			}
		}
		n.Logs++
		n.Records += len(records)
	}
	if err := e.Encode(archiveLine{End: &n}); err != nil {
		return n, err
	}
	return n, out.Flush()
}

// Import fills an empty store from an archive. An ended log ends now, and is kept for the retention from now on. It
// holds one line, and some records, in memory. After an error the store has a part of the archive.
func Import(ctx context.Context, s Store, r io.Reader) (n ArchiveCounts, err error) {
	for _, err := range s.List(ctx, "", "") {
		if err != nil {
			return n, err
		}
		return n, errors.New("the store is not empty")
	}
	in := &importer{store: s, lines: bufio.NewReaderSize(r, 64<<10)}
	if err := in.all(ctx); err != nil {
		return in.n, fmt.Errorf("line %d of the archive: %w", in.line, err)
	}
	return in.n, nil
}

// importer reads an archive.
type importer struct {
	store Store
	lines *bufio.Reader
	line  int // number of the last one read
	n     ArchiveCounts

	head archiveLine // of the log being read; no Log for none
	next Append      // of the log
	last uint64      // number of the last record read of the log
	size int         // of next.Records
}

func (in *importer) all(ctx context.Context) error {
	l, err := in.read()
	switch {
	case err != nil:
		return err
	case l.Archive != archiveName:
		return errors.New("this is no archive of a store, or one of a development version, which no other can read")
	case l.Version != archiveVersion:
		return fmt.Errorf("the archive has the version %d, but this program knows only %d", l.Version, archiveVersion)
	}
	for {
		l, err := in.read()
		if err == io.EOF {
			return errors.New("the archive is cut off")
		}
		if err != nil {
			return err
		}
		switch {
		case l.Log != nil:
			if err = in.finish(ctx); err == nil {
				err = in.begin(ctx, l)
			}
		case l.Seq > 0:
			err = in.record(ctx, l)
		case l.End != nil:
			if err := in.finish(ctx); err != nil {
				return err
			}
			if *l.End != in.n {
				return fmt.Errorf("it says that there are %+v, but there were %+v", *l.End, in.n)
			}
			return nil
		default:
			err = errors.New("it is no line of an archive")
		}
		if err != nil {
			return err
		}
	}
}

// read reads a line.
func (in *importer) read() (l archiveLine, err error) {
	var whole []byte
	in.line++
	for {
		part, err := in.lines.ReadSlice('\n')
		if len(whole)+len(part) > maxArchiveLine {
			return l, fmt.Errorf("it has more than %d bytes", maxArchiveLine)
		}
		whole = append(whole, part...)
		if err == nil {
			break
		}
		if err == io.EOF && len(whole) > 0 {
			return l, errors.New("the archive is cut off")
		}
		if err != bufio.ErrBufferFull {
			return l, err
		}
	}
	return l, json.Unmarshal(whole, &l)
}

// begin begins a log.
func (in *importer) begin(ctx context.Context, l archiveLine) error {
	in.head, in.last, in.size = l, 0, 0
	in.next = Append{Log: string(*l.Log)}
	in.n.Logs++
	if l.First <= 1 {
		return nil
	}
	// A record dropped with the first append stands for those in the snapshot.
	in.last = l.First - 1
	err := in.store.Append(ctx, Append{Log: in.next.Log, Skip: l.First - 2, Records: [][]byte{{'-'}}})
	in.next.Expect, in.next.Trim, in.next.Snapshot = 1, in.last, l.Snapshot
	return err
}

// record adds a record to the log.
func (in *importer) record(ctx context.Context, l archiveLine) error {
	if in.head.Log == nil || l.Seq <= in.last || l.Seq > in.head.Last {
		return fmt.Errorf("the record %d is out of order", l.Seq)
	}
	if skip := l.Seq - in.last - 1; skip > 0 || len(in.next.Records) >= 1000 || in.size > 1<<20 {
		if len(in.next.Records) > 0 {
			if err := in.append(ctx); err != nil {
				return err
			}
		}
		in.next.Skip = skip
	}
	in.next.Records = append(in.next.Records, l.Data)
	in.size += len(l.Data)
	in.last = l.Seq
	in.n.Records++
	return nil
}

// append appends the records read.
func (in *importer) append(ctx context.Context) error {
	if err := in.store.Append(ctx, in.next); err != nil {
		return err
	}
	in.size = 0
	in.next = Append{Log: in.next.Log, Expect: in.next.Expect + 1}
	return nil
}

// finish ends the log, if there is one.
func (in *importer) finish(ctx context.Context) error {
	if in.head.Log == nil {
		return nil
	}
	if in.last != in.head.Last {
		return fmt.Errorf("the log before it has the records up to %d, but must have them up to %d", in.last, in.head.Last)
	}
	in.next.Metadata, in.next.DueAt, in.next.End = in.head.Metadata, in.head.DueAt, !in.head.Ended.IsZero()
	for _, l := range in.head.Lists {
		in.next.Lists = append(in.next.Lists, Listing{List: string(l.List), At: l.At, Label: string(l.Label)})
	}
	in.head = archiveLine{}
	return in.append(ctx)
}
