// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// generator makes values at random, of valid UTF-8, since JSON cannot say anything else.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator { return generator{rand.New(rand.NewPCG(seed, 1))} }

func (g generator) pick(s ...string) string { return s[g.IntN(len(s))] }

func (g generator) text() string {
	return g.pick("", "a", "b", "北京 😀", "\"\\\n\r\t\x00\x1f\x7f", "\u2028<&>", strings.Repeat("长x", 30))
}

func (g generator) id() string { return g.pick("a", "b", "c", "北京") }

func (g generator) raw() json.RawMessage {
	return json.RawMessage(g.pick("", `{}`, `{"a":[1.0,1e3,{"b":null}]}`))
}

func (g generator) extra() json.RawMessage {
	return json.RawMessage(g.pick("", "", `{"a2a":{"x":1,"metadata":{"k":"v"}}}`, `{"aip":{"x":[1.0]},"other":{}}`))
}

func (g generator) time() time.Time {
	return time.Unix(g.Int64N(4e9), g.Int64N(1e9)).In(time.FixedZone("", 60*(g.IntN(47*60)-23*60)))
}

func (g generator) state() State { return States()[g.IntN(len(States()))] }

func (g generator) items() (items []DataItem) {
	for range g.IntN(4) {
		it := DataItem{Metadata: g.raw()}
		switch g.IntN(6) {
		case 0, 1, 2:
			it = Text(g.text())
		case 3:
			it.Kind, it.Text = TextItem, g.text()
		case 4:
			it.Kind, it.Name, it.MIMEType, it.URI, it.Bytes = FileItem, g.text(), g.text(), g.text(), g.pick("", "QQ==")
		case 5:
			it.Kind, it.Data = DataKind, g.raw()
		}
		items = append(items, it)
	}
	return items
}

func (g generator) status() Status { return Status{g.state(), g.time(), g.items(), g.extra(), nil} }

func (g generator) product() Product {
	return Product{g.id(), g.text(), g.text(), g.items(), g.extra()}
}

func (g generator) message() Message {
	m := Message{
		ID: g.id(), SentAt: g.time(), SenderRole: Leader, SenderID: g.id(), Command: Commands()[g.IntN(6)], Params: g.raw(),
		DataItems: g.items(), TaskID: g.text(), GroupID: g.text(), SessionID: g.text(), Extensions: g.extra(),
	}
	for range g.IntN(3) {
		m.Mentions = append(m.Mentions, g.text())
		m.References = append(m.References, g.text())
	}
	return m
}

func (g generator) products() (out []Product) {
	for i := range g.IntN(4) {
		p := g.product()
		p.ID = fmt.Sprint(p.ID, i)
		out = append(out, p)
	}
	return out
}

func (g generator) task() Task {
	t := Task{ID: g.id(), SenderID: g.text(), Status: g.status(), Products: g.products(), GroupID: g.text(),
		SessionID: g.text(), Extensions: g.extra()}
	for range g.IntN(3) {
		t.MessageHistory = append(t.MessageHistory, g.message())
		t.StatusHistory = append(t.StatusHistory, g.status())
	}
	return t
}

// TestAppendTask holds the handwritten writer against encoding/json, as writer and reader.
func TestAppendTask(t *testing.T) {
	g := newGenerator(1)
	for range 300 {
		want := g.task()
		data := AppendTask(nil, &want)
		var got Task
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("%v:\n%s", err, data)
		}
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
		theirs, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tree(t, theirs), tree(t, data)); d != "" {
			t.Fatal(d)
		}
	}
}

// tree reads JSON without the members of one side only: the type of a Task or a Message, and empty values.
func tree(t *testing.T, data []byte) any {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	var strip func(v any) any
	strip = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for key, member := range v {
				if key == "metadata" || key == "data" || key == "commandParams" {
					continue // a payload
				}
				member = strip(member)
				if member == nil || member == "" || key == "type" && (member == "task" || member == "message") {
					delete(v, key)
				}
			}
		case []any:
			for i := range v {
				v[i] = strip(v[i])
			}
			if len(v) == 0 {
				return nil
			}
		}
		return v
	}
	return strip(v)
}

// TestEveryFieldIsWritten fails when a field is added to a type and not to its Append function.
func TestEveryFieldIsWritten(t *testing.T) {
	at := time.Date(2025, 9, 1, 12, 0, 0, 0, time.UTC)
	raw := json.RawMessage(`{"a":1}`)
	items := []DataItem{
		{Kind: TextItem, Text: "t", Metadata: raw},
		{Kind: FileItem, Name: "n", MIMEType: "m", URI: "u", Bytes: "b", Metadata: raw},
		{Kind: DataKind, Data: raw, Metadata: raw},
	}
	status := Status{Working, at, items, raw, raw}
	message := Message{"i", at, Leader, "s", []string{"a"}, Start, raw, items, "t", "g", "s", []string{"r"}, raw}
	full := Task{"i", "s", status, []Product{{"i", "n", "d", items, raw}}, []Message{message}, []Status{status}, "g",
		"s", raw, true}
	data := AppendTask(nil, &full)
	var names func(reflect.Type)
	names = func(typ reflect.Type) {
		for typ.Kind() == reflect.Slice || typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || typ == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			if !strings.Contains(string(data), `"`+name+`":`) {
				t.Errorf("%v.%s is not written as %q", typ, typ.Field(i).Name, name)
			}
			names(typ.Field(i).Type)
		}
	}
	names(reflect.TypeFor[Task]())
}

func TestAppendTaskIsWhole(t *testing.T) {
	at := time.Date(2025, 9, 1, 12, 0, 0, 0, time.FixedZone("", 8*60*60))
	got := string(AppendTask([]byte("x"), &Task{ID: "t", SessionID: "s", Status: Status{State: Working, ChangedAt: at}}))
	want := `x{"type":"task","id":"t","status":{"state":"working","stateChangedAt":"2025-09-01T12:00:00+08:00"},` +
		`"products":[],"sessionId":"s"}`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestProductsSize(t *testing.T) {
	products := []Product{
		{ID: "not counted", Name: "not counted", DataItems: []DataItem{Text("北京"),
			{Kind: FileItem, Name: "not counted", Bytes: "QUJD", URI: "not counted"}}},
		{DataItems: []DataItem{{Kind: DataKind, Data: json.RawMessage(`{"a":1}`), Metadata: json.RawMessage(`{}`)}},
			Extensions: json.RawMessage(`{"f":{}}`)},
	}
	if got, want := ProductsSize(products), int64(6+4+7+8); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}

func TestTermsOr(t *testing.T) {
	defaults := Terms{1, 2, 3, 4}
	if got := (Terms{}).Or(defaults); got != defaults {
		t.Errorf("got %+v", got)
	}
	if own := (Terms{5, 6, 7, 8}); own.Or(defaults) != own {
		t.Errorf("got %+v", own.Or(defaults))
	}
}

// TestAppendStringAnywhere has one odd character at each place of strings of each length.
func TestAppendStringAnywhere(t *testing.T) {
	for n := range 40 {
		for at := range n {
			for _, odd := range []string{"\"", "\\", "\n", "\x00", "\x1f", "\x7f", " ", "!", "ü", "\xff", "世"} {
				plain := strings.Repeat("a", n)
				s := plain[:at] + odd + plain[at:]
				var got string
				if err := json.Unmarshal(AppendString(nil, s), &got); err != nil || got != strings.ToValidUTF8(s, "\ufffd") {
					t.Errorf("%q becomes %q, %v", s, got, err)
				}
			}
		}
	}
}

// TestAppendStringInPlace writes into memory of each length. What follows the string there stays as it is.
func TestAppendStringInPlace(t *testing.T) {
	for _, s := range []string{"plain, and longer than a word", "\"a\"\tb\\c\nd\re\x01f", "Grüße\xff aus\n北京"} {
		want := AppendString(nil, s)
		for room := range 2 * len(want) {
			memory := bytes.Repeat([]byte{'#'}, room)
			got := AppendString(memory[:0], s)
			if !bytes.Equal(got, want) {
				t.Errorf("with room for %d bytes, %q is written as %s, want %s", room, s, got, want)
			}
			if rest := memory[min(room, len(want)):]; len(rest) > 0 && len(bytes.Trim(rest, "#")) > 0 {
				t.Errorf("with room for %d bytes, %q leaves %q behind it", room, s, rest)
			}
		}
	}
}

func BenchmarkAppendString(b *testing.B) {
	source, err := os.ReadFile("json.go")
	if err != nil {
		b.Fatal(err)
	}
	for name, s := range map[string]string{
		"source":  string(source),
		"plain":   strings.Repeat("a text of ten kilobytes, ", 400),
		"escapes": strings.Repeat("if a == \"b\" {\n\t\treturn c ", 400),
		"chinese": strings.Repeat("一段十千字节的文字，", 400),
	} {
		b.Run(name, func(b *testing.B) {
			dst := make([]byte, 0, 2*len(s))
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				AppendString(dst, s)
			}
		})
	}
}

// FuzzAppendString holds AppendString against encoding/json.
func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "北京 😀", "\"\\/\b\f\n\r\t\x00\x1f\x7f", "\u2028\u2029\ufffd", "\xff\xfe",
		"\xed\xa0\x80", "a\xc3", "<&>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		data := AppendString([]byte("x"), s)
		if data[0] != 'x' || strings.ContainsAny(string(data), "\n\r") {
			t.Fatalf("not appended on one line: %q", data)
		}
		var got, want string
		if err := json.Unmarshal(data[1:], &got); err != nil {
			t.Fatalf("%v: %q", err, data)
		}
		theirs, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(theirs, &want); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Fatalf("%q is written as %q", want, got)
		}
	})
}
