// SPDX-License-Identifier: Apache-2.0

package sseproxy

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

type read struct{ Name, ID, Data string }

// readAll returns the events of src and the error at their end.
func readAll(src io.Reader, limits Limits) ([]read, error) {
	r := NewReader(src, limits)
	var all []read
	for {
		ev, err := r.Next()
		if err != nil {
			if _, again := r.Next(); again != err {
				return all, errors.New("the error is not returned again")
			}
			return all, err
		}
		all = append(all, read{ev.Name, string(ev.ID), string(ev.Data)})
	}
}

func TestReader(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []read
		err      error
	}{
		{"empty", "", nil, io.EOF},
		{"one", "data: a\n\n", []read{{"message", "", "a"}}, io.EOF},
		{"only one space is taken away", "data:  a\ndata:b\n\n", []read{{"message", "", " a\nb"}}, io.EOF},
		{"CRLF", "event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []read{{"x", "", "a"}, {"message", "", "b"}}, io.EOF},
		{"CR", "event: x\rdata: a\r\rdata: b\r\r", []read{{"x", "", "a"}, {"message", "", "b"}}, io.EOF},
		{"mixed ends", "data: a\r\ndata: b\rdata: c\n\r\n", []read{{"message", "", "a\nb\nc"}}, io.EOF},
		{"LF CR are two ends", "data: a\n\rdata: b\n\n", []read{{"message", "", "a"}, {"message", "", "b"}}, io.EOF},
		{"byte order mark", "\ufeffdata: a\n\n", []read{{"message", "", "a"}}, io.EOF},
		{"only one byte order mark", "\ufeff\ufeffdata: a\n\ndata: b\n\n", []read{{"message", "", "b"}}, io.EOF},
		{"byte order mark alone", "\ufeff", nil, io.EOF},
		{"half a byte order mark", "\xef\xbb", nil, io.ErrUnexpectedEOF},
		{"comments", ": hello\n\n:\n\ndata: a\n:b\n\n", []read{{"message", "", "a"}}, io.EOF},
		{"names do not last", "event: x\ndata: a\n\ndata: b\n\n", []read{{"x", "", "a"}, {"message", "", "b"}}, io.EOF},
		{"the last name counts", "event: x\nevent: y\ndata: a\n\n", []read{{"y", "", "a"}}, io.EOF},
		{"no data, no event", "event: x\n\nid: 3\n\ndata: a\n\n", []read{{"message", "3", "a"}}, io.EOF},
		{"empty data", "data\n\ndata:\n\ndata\ndata\n\n",
			[]read{{"message", "", ""}, {"message", "", ""}, {"message", "", "\n"}}, io.EOF},
		{"ids last", "id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n",
			[]read{{"message", "1", "a"}, {"message", "1", "b"}, {"message", "", "c"}}, io.EOF},
		{"an id with NUL", "id: 1\nid: 2\x00\ndata: a\n\n", []read{{"message", "1", "a"}}, io.EOF},
		{"unknown fields", "foo: 1\nData: x\n data: y\ndata: a\n\n", []read{{"message", "", "a"}}, io.EOF},
		{"a colon in the value", "data: a: b\n\n", []read{{"message", "", "a: b"}}, io.EOF},
		{"unfinished event", "data: a\n\ndata: b\n", []read{{"message", "", "a"}}, io.ErrUnexpectedEOF},
		{"unfinished line", "data: a\n\ndata: b", []read{{"message", "", "a"}}, io.ErrUnexpectedEOF},
		{"unfinished name", "event: a\n", nil, io.ErrUnexpectedEOF},
		{"an end after a comment", "data: a\n\n: bye\n", []read{{"message", "", "a"}}, io.EOF},
		{"line of the greatest length", "data: 123456789\n\n", []read{{"message", "", "123456789"}}, io.EOF},
		{"line too long", "data: a\n\ndata: 1234567890\n\n", []read{{"message", "", "a"}}, ErrTooLarge},
		{"comment too long", ":" + strings.Repeat("x", 15) + "\ndata: a\n\n", nil, ErrTooLarge},
		{"endless line", strings.Repeat("x", 1<<20), nil, ErrTooLarge},
		{"event of the greatest size", "data: 123456\ndata: 123456\ndata: 123456\n\n",
			[]read{{"message", "", "123456\n123456\n123456"}}, io.EOF},
		{"event too large", "data: 123456\ndata: 123456\ndata: 1234567\n\n", nil, ErrTooLarge},
	} {
		t.Run(tc.name, func(t *testing.T) {
			limits := Limits{Line: 15, Event: 20}
			got, err := readAll(strings.NewReader(tc.in), limits)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if !errors.Is(err, tc.err) {
				t.Errorf("error is %v, want %v", err, tc.err)
			}
		})
	}
}

func TestReaderRetry(t *testing.T) {
	r := NewReader(strings.NewReader("retry: 1500\nretry: 2x\nretry: -3\nretry:\ndata: a\n\n"), Limits{})
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if got, want := r.Retry(), 1500*time.Millisecond; got != want {
		t.Errorf("Retry is %v, want %v", got, want)
	}
}

func TestReaderPassesOnErrors(t *testing.T) {
	broken := errors.New("broken")
	src := io.MultiReader(strings.NewReader("data: a\n\ndata: b\n\ndata: c"), iotest.ErrReader(broken))
	got, err := readAll(src, Limits{})
	if diff := cmp.Diff([]read{{"message", "", "a"}, {"message", "", "b"}}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if err != broken {
		t.Errorf("error is %v, want %v", err, broken)
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

// TestReaderResumes: the part of an event read before a temporary failure of the source is not lost.
func TestReaderResumes(t *testing.T) {
	const stream = "event: e\ndata: 1\ndata: 2\n\n"
	late, other := errors.New("late"), errors.New("other")
	for cut := range len(stream) {
		r := NewReader(io.MultiReader(strings.NewReader(stream[:cut]), iotest.ErrReader(late)), Limits{})
		_, err := r.Next()
		r.Resume(other)
		if _, again := r.Next(); !errors.Is(err, late) || !errors.Is(again, late) {
			t.Fatalf("cut at %d: %v, then %v", cut, err, again)
		}
	}
	for cut := range len(stream) {
		parts := &failing{parts: []string{stream[:cut], "", stream[cut:]}, err: late}
		r := NewReader(parts, Limits{})
		_, err := r.Next()
		r.Resume(late)
		ev, again := r.Next()
		if !errors.Is(err, late) || again != nil || ev.Name != "e" || string(ev.Data) != "1\n2" {
			t.Errorf("cut at %d: %v, then %s %q, %v", cut, err, ev.Name, ev.Data, again)
		}
	}
}

// failing is a source failing at an empty part, and going on.
type failing struct {
	parts []string
	err   error
}

func (f *failing) Read(p []byte) (int, error) {
	for len(f.parts) > 0 {
		part := f.parts[0]
		f.parts = f.parts[1:]
		switch {
		case part != "":
			return copy(p, part), nil
		case f.err != nil:
			err := f.err
			f.err = nil
			return 0, err
		}
	}
	return 0, io.EOF
}

func TestReaderGivesUpOnIdleSource(t *testing.T) {
	if _, err := NewReader(idle{}, Limits{}).Next(); err != io.ErrNoProgress {
		t.Errorf("error is %v, want %v", err, io.ErrNoProgress)
	}
}

// A CR at the end of an event must not make it wait for the next byte.
func TestReaderDoesNotWaitAfterCR(t *testing.T) {
	in, out := io.Pipe()
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		io.WriteString(out, "data: a\r\r")
	}()
	ev, err := NewReader(in, Limits{}).Next()
	if err != nil || string(ev.Data) != "a" {
		t.Errorf("got %q, %v", ev.Data, err)
	}
	<-wrote
}

func TestReaderGivesMemoryBack(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	in, out := io.Pipe()
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		io.WriteString(out, "data: "+big+"\n\n")
		io.WriteString(out, "data: a\n\n")
		out.Close()
	}()
	r := NewReader(in, Limits{})
	for range 2 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Fatal(err)
	}
	if got := cap(r.data) + len(r.buf); got > 2*keep {
		t.Errorf("holds %d bytes after a large event", got)
	}
	<-wrote
}

// plain reads a whole stream the way the standard words it, without limits.
func plain(in []byte) ([]read, error) {
	in = bytes.TrimPrefix(in, bom)
	in = bytes.ReplaceAll(bytes.ReplaceAll(in, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	lines := strings.Split(string(in), "\n")
	var all []read
	var name, data, id string
	pending := false
	for _, line := range lines[:len(lines)-1] {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if data != "" {
				if name == "" {
					name = "message"
				}
				all = append(all, read{name, id, strings.TrimSuffix(data, "\n")})
			}
			name, data, pending = "", "", false
			continue
		case field == "event":
			name = value
		case field == "data":
			data += value + "\n"
		case field == "id":
			if !strings.Contains(value, "\x00") {
				id = value
			}
		case field == "retry":
		default:
			continue
		}
		pending = true
	}
	if pending || lines[len(lines)-1] != "" {
		return all, io.ErrUnexpectedEOF
	}
	return all, io.EOF
}

// The events are those of the standard, however the bytes are split, and the limits hold alike.
func FuzzReader(f *testing.F) {
	for _, in := range []string{
		"data: a\n\n", "\ufeffdata: a\r\n\r\n: c\r\rdata", "event: x\rid: 1\rdata: a\rdata: b\r\r\ndata: c\n\n",
		"retry: 10\n\ndata\n\n\n\r\n\rdata:x", "id: \x00\ndata: \xff\n\n",
		"event: a\r\nid: 1\r\ndata: x\r\n\r\nevent: b\nid:2\ndata:y\n\nevent:\nid\ndata: z\n\ndata: 1\ndata: 2\n\n",
	} {
		f.Add([]byte(in), 40)
	}
	f.Fuzz(func(t *testing.T, in []byte, limit int) {
		want, wantErr := plain(in)
		got, err := readAll(bytes.NewReader(in), Limits{})
		if diff := cmp.Diff(want, got); diff != "" || err != wantErr {
			t.Fatalf("errors %v and %v; events (-want +got):\n%s", wantErr, err, diff)
		}
		source := &countedReads{r: iotest.HalfReader(bytes.NewReader(in))}
		if diff := cmp.Diff(want, readReady(t, source)); diff != "" {
			t.Fatalf("with Ready; events (-want +got):\n%s", diff)
		}
		limits := Limits{Line: 1 + limit&0xff, Event: 1 + limit>>8&0xff}
		whole, wholeErr := readAll(bytes.NewReader(in), limits)
		for _, split := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
			got, err := readAll(split(bytes.NewReader(in)), limits)
			if diff := cmp.Diff(whole, got); diff != "" || err.Error() != wholeErr.Error() {
				t.Fatalf("split: errors %v and %v; events (-whole +split):\n%s", wholeErr, err, diff)
			}
		}
	})
}

// countedReads counts the reads of r.
type countedReads struct {
	r io.Reader
	n int
}

func (c *countedReads) Read(p []byte) (int, error) {
	c.n++
	return c.r.Read(p)
}

// readReady reads all events, and asks before each whether it is there: then nothing more may be read for it.
func readReady(t *testing.T, source *countedReads) (all []read) {
	r := NewReader(source, Limits{})
	for {
		ready, reads := r.Ready(), source.n
		ev, err := r.Next()
		if ready && (err != nil || source.n > reads) {
			t.Fatalf("Ready, but Next has read, and returns %v", err)
		}
		if err != nil {
			return all
		}
		all = append(all, read{ev.Name, string(ev.ID), string(ev.Data)})
	}
}

// TestReaderBuffer: a Reader has a large buffer only while much comes in.
func TestReaderBuffer(t *testing.T) {
	one := "data: " + strings.Repeat("x", 100) + "\n\n"
	many := strings.Repeat(one, 1000)
	sizes := make(map[int]int)
	r := NewReader(io.MultiReader(strings.NewReader(one), strings.NewReader(many), strings.NewReader(one),
		strings.NewReader(one)), Limits{})
	for range 1003 {
		if ev, err := r.Next(); err != nil || len(ev.Data) != 100 {
			t.Fatal(len(ev.Data), err)
		}
		sizes[len(r.buf)]++
	}
	if len(r.buf) != smallBuffer || sizes[largeBuffer] < 900 || len(sizes) != 2 {
		t.Errorf("a buffer of %d bytes in the end; sizes %v", len(r.buf), sizes)
	}
	r.Close()
	if _, err := r.Next(); err == nil || r.buf != nil {
		t.Errorf("after Close: %v, and %d bytes", err, len(r.buf))
	}
}

func BenchmarkReader(b *testing.B) {
	one := "event: task_artifact_update\ndata: " + strings.Repeat("x", 200) + "\n\n"
	in := strings.Repeat(one, 1000)
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		r := NewReader(strings.NewReader(in), Limits{})
		for {
			if _, err := r.Next(); err != nil {
				break
			}
		}
	}
}

func TestReady(t *testing.T) {
	for _, test := range []struct {
		rest string
		want bool
	}{
		{"", false}, {"data: 2", false}, {"data: 2\n", false}, {"data: 2\n\n", true}, {": a comment\n\n", false},
		{"data: 2\r\n\r\n", true}, {"event: x\ndata: 2\n\ndata: 3", true}, {"\n\n: c\n\ndata", false},
	} {
		r := NewReader(strings.NewReader("data: 1\n\n"+test.rest), Limits{})
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		if got := r.Ready(); got != test.want {
			t.Errorf("with %q left, Ready is %t", test.rest, got)
		}
	}
}
