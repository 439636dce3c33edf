// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func events(t *testing.T, r io.Reader) []string {
	t.Helper()
	var got []string
	err := ReadEvents(r, func(e Event) error {
		got = append(got, e.Name+"|"+e.ID+"|"+string(e.Data))
		return nil
	})
	if !errors.Is(err, io.EOF) {
		t.Errorf("the end is %v", err)
	}
	return got
}

func TestReadEvents(t *testing.T) {
	for name, c := range map[string]struct {
		stream string
		want   []string
	}{
		"one":                   {"data: a\n\n", []string{"||a"}},
		"without a space":       {"data:a\n\n", []string{"||a"}},
		"several lines":         {"data: a\ndata\ndata: b\n\n", []string{"||a\n\nb"}},
		"CR LF":                 {"data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", []string{"||a\nb", "||c"}},
		"CR":                    {"data: a\rdata: b\r\rdata: c\r\r", []string{"||a\nb", "||c"}},
		"fields and a comment":  {": hi\nid: 1\nevent: e\nretry: 5\ndata: a\n\ndata: b\n\n", []string{"e|1|a", "|1|b"}},
		"no data":               {"event: e\n\nid: 4\n\n", nil},
		"a byte order mark":     {"\xEF\xBB\xBFdata: a\n\n", []string{"||a"}},
		"without an empty line": {"data: a\n\ndata: b\n", []string{"||a"}},
		"an empty stream":       {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, events(t, strings.NewReader(c.stream))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, events(t, iotest.OneByteReader(strings.NewReader(c.stream)))); diff != "" {
				t.Errorf("byte by byte (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadEventsIsBounded(t *testing.T) {
	most := limits{stream: 100, event: 20, events: 5}
	for stream, want := range map[string]string{
		strings.Repeat("x", 21):             "a line of the stream has more than 20 bytes",
		strings.Repeat("\n", 101):           "the stream has too many bytes",
		strings.Repeat("data: 123456\n", 4): "an event has more than 20 bytes",
		strings.Repeat("data:1\n\n", 6):     "the stream has more than 5 events",
		strings.Repeat("data:1\n\n", 5):     "EOF",
	} {
		err := readEvents(strings.NewReader(stream), most, func(Event) error { return nil })
		if err == nil || err.Error() != want {
			t.Errorf("%q: the end is %v, want %s", stream, err, want)
		}
	}
}

func FuzzReadEvents(f *testing.F) {
	for _, seed := range []string{"data: a\r\ndata: b\r\n\r\n", "\r\r\n\n", ":\nid: 1\ndata\n\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		whole := events(t, strings.NewReader(stream))
		if diff := cmp.Diff(whole, events(t, iotest.OneByteReader(strings.NewReader(stream)))); diff != "" {
			t.Errorf("byte by byte it is another stream (-whole +bytes):\n%s", diff)
		}
	})
}
