// SPDX-License-Identifier: Apache-2.0

package task

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// asciiJSON writes a string as some encoders do: all but ASCII escaped.
func asciiJSON(s string) string {
	quoted, _ := json.Marshal(s) // it escapes <, > and &, too
	var b strings.Builder
	for _, r := range string(quoted) {
		switch {
		case r >= 0x10000:
			fmt.Fprintf(&b, `\u%04X\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		case r >= utf8.RuneSelf:
			fmt.Fprintf(&b, `\u%04x`, r)
		case r == '/':
			b.WriteString(`\/`)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// FuzzPieces: a text added as JSON, with any escapes, is stored as the chunk of the text is, and the stored event is
// read as encoding/json reads it.
func FuzzPieces(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\/\b\f\n\r\t\x00\x1f\u007f<&>\u2028", "é💡\ufffd", "\\u0041", "\xff"} {
		f.Add("p1", "name", s, true, false)
	}
	f.Fuzz(func(t *testing.T, id, name, text string, adds, last bool) {
		text = strings.ToValidUTF8(text, "?")
		id, name = strings.ToValidUTF8(id, "?"), strings.ToValidUTF8(name, "?")
		want := Chunk{Product: Product{ID: id, Name: name, DataItems: []DataItem{Text(text)}}, Append: adds, Last: last}
		stored := AppendEvent(nil, &Event{Chunk: &want})
		var pieces Pieces
		plain := string(appendEscaped(nil, text))
		for _, raw := range []string{plain, strings.Trim(asciiJSON(text), `"`), asciiJSON(text)[1 : len(asciiJSON(text))-1]} {
			if quoted := `"` + raw + `"`; !json.Valid([]byte(quoted)) { // a quote at an end was an escaped one
				continue
			} else if s := ""; json.Unmarshal([]byte(quoted), &s) != nil || s != text {
				continue
			}
			pieces.AddText(id, name, []byte(raw), adds, last)
		}
		pieces.AddChunk(&want)
		for i := range pieces.Len() {
			if got := string(pieces.Record(i)); got != string(stored) {
				t.Fatalf("piece %d is stored as\n%s, want\n%s", i, got, stored)
			}
			if d := cmp.Diff(want, pieces.Chunk(i)); d != "" {
				t.Fatalf("piece %d:\n%s", i, d)
			}
		}
		if n := int64(pieces.Len() * len(text)); pieces.size != n {
			t.Fatalf("the size is %d, want %d", pieces.size, n)
		}
		if c, ok := decodeText(stored); !ok || !cmp.Equal(want, c) {
			t.Fatalf("%t:\n%s", ok, cmp.Diff(want, c))
		}
	})
}

// FuzzDecodeText: decodeText reads an event as encoding/json does, or does not take it.
func FuzzDecodeText(f *testing.F) {
	for _, text := range []string{"", "plain", "\"\\\n\r\t\x00\x1f", "é💡"} {
		c := Chunk{Product: Product{ID: "p1", Name: text, DataItems: []DataItem{Text(text)}}, Append: text != ""}
		f.Add(AppendEvent(nil, &Event{Chunk: &c}))
	}
	f.Add([]byte(`c{"product":{"id":"p","dataItems":[{"type":"text","text":"\u0041"}]},"append":true,"lastChunk":false}`))
	f.Add([]byte(`c{"product":{"id":"p","dataItems":[{"type":"text","text":"\q"}]},"append":true,"lastChunk":false}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := decodeText(data)
		if !ok {
			return
		}
		var want Chunk
		if err := json.Unmarshal(data[1:], &want); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

// TestFoldOfPieces: pieces applied together, and joined whenever the task is read, make the same task as one by one.
// Nothing read before changes.
func TestFoldOfPieces(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(7, seed))
		var pieces Pieces
		var chunks []Chunk
		for range rnd.IntN(40) {
			c := Chunk{Append: rnd.IntN(10) > 0, Product: Product{ID: strconv.Itoa(rnd.IntN(3))}}
			for range 1 + rnd.IntN(10)/9 {
				c.Product.DataItems = append(c.Product.DataItems, Text(strings.Repeat("a\"\né"[:1+rnd.IntN(3)], rnd.IntN(9))))
			}
			switch rnd.IntN(10) {
			case 0:
				c.Product.Name = "name " + strconv.Itoa(rnd.IntN(2))
			case 1:
				c.Product.DataItems[0] = DataItem{Kind: DataKind, Data: json.RawMessage("{}")}
			case 2:
				c.Product.Extensions = json.RawMessage(`{"a":1}`)
			}
			chunks = append(chunks, c)
			pieces.AddChunk(&chunks[len(chunks)-1])
		}
		var one, many Fold
		type moment struct {
			products []Product
			json     string
		}
		var read []moment
		for i := 0; i < len(chunks); {
			n := 1 + rnd.IntN(len(chunks)-i)
			for j := i; j < i+n; j++ {
				one.Apply(Event{Seq: uint64(j + 1), Chunk: &chunks[j]})
				one.Task()
			}
			many.ApplyPieces(&pieces, i, i+n, uint64(i+1))
			i += n
			if one.Seq != many.Seq || one.ProductsSize() != many.ProductsSize() ||
				many.ProductsSize() != ProductsSize(one.Task().Products) {
				t.Fatalf("seed %d: numbers %d and %d, sizes %d and %d", seed, one.Seq, many.Seq, one.ProductsSize(),
					many.ProductsSize())
			}
			if rnd.IntN(2) == 0 {
				now := many.Task().Products
				read = append(read, moment{now, string(Form(nil).AppendProducts(nil, now))})
			}
			if rnd.IntN(4) == 0 {
				offer := Event{Status: &Status{State: Working}, Offer: []string{"1", "0"}}
				offer.Seq = one.Seq
				one.Apply(offer)
				many.Apply(offer)
			}
		}
		if d := cmp.Diff(*one.Task(), *many.Task(), cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("seed %d (-one by one +together):\n%s", seed, d)
		}
		for i, m := range read {
			if now := string(Form(nil).AppendProducts(nil, m.products)); now != m.json {
				t.Fatalf("seed %d: what was read at moment %d has changed:\n%s", seed, i, cmp.Diff(m.json, now))
			}
		}
	}
}

// TestFitting: the fitting pieces are those before the first to exceed the limit.
func TestFitting(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(8, seed))
		var fold Fold
		var pieces Pieces
		for range rnd.IntN(30) {
			c := Chunk{Append: rnd.IntN(4) > 0, Product: Product{ID: strconv.Itoa(rnd.IntN(3)),
				DataItems: []DataItem{Text(strings.Repeat("x", rnd.IntN(20)))}}}
			if rnd.IntN(4) == 0 {
				c.Product.DataItems[0].Metadata = json.RawMessage(`{}`)
			}
			if rnd.IntN(3) == 0 {
				fold.Apply(Event{Chunk: &c})
			} else {
				pieces.AddChunk(&c)
			}
		}
		most := rnd.Int64N(300)
		n, size := pieces.Fitting(&fold, most)
		for i := range pieces.Len() {
			c := pieces.Chunk(i)
			fold.Apply(Event{Chunk: &c})
			if got := ProductsSize(fold.Task().Products); got > most {
				if n != i || size != got {
					t.Fatalf("seed %d: %d fit, with one more %d bytes; want %d and %d", seed, n, size, i, got)
				}
				break
			} else if i == n {
				t.Fatalf("seed %d: %d fit, but with one more there are %d bytes", seed, n, got)
			}
		}
	}
}

// BenchmarkDecodeEvent measures the reading of a stored event of a piece of text.
func BenchmarkDecodeEvent(b *testing.B) {
	c := Chunk{Product: Product{ID: "p1", DataItems: []DataItem{Text("a piece of a text, as long as a model gives it\n")}},
		Append: true}
	data := AppendEvent(nil, &Event{Chunk: &c})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeEvent(data); err != nil {
			b.Fatal(err)
		}
	}
}
