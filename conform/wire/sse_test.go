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

// endless is a stream of one byte, again and again.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func TestReadEventsIsBounded(t *testing.T) {
	for name, r := range map[string]io.Reader{
		"a line":     endless('x'),
		"newlines":   endless('\n'),
		"event data": io.MultiReader(strings.NewReader("data: "), endless('x')),
	} {
		err := ReadEvents(r, func(Event) error { return nil })
		if err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: the end is %v, want a limit", name, err)
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
