// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestPacked packs heads alike and unlike, and unpacks them when more was learned.
func TestPacked(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	text := func(most int) string {
		b := make([]byte, random.IntN(most+1))
		for i := range b {
			b[i] = "ab"[random.IntN(2)]
		}
		return string(b)
	}
	moment := func() time.Time {
		if random.IntN(3) == 0 {
			return time.Time{}
		}
		return time.Unix(random.Int64N(1<<40), random.Int64N(1e9))
	}
	type one struct {
		log    string
		packed []byte
		head   Head
	}
	var p packer
	var all []one
	for i := range 2000 {
		h := Head{Revision: random.Uint64N(100), First: random.Uint64(), Last: random.Uint64(), Bytes: random.Int64(),
			DueAt: moment(), Ended: moment(), Lost: random.Uint64N(3), Cut: random.IntN(2) == 0}
		for range random.IntN(3) {
			h.Gaps = append(h.Gaps, Gap{random.Uint64(), random.Uint64()})
		}
		for range random.IntN(5) {
			h.Lists = append(h.Lists, Listing{List: text(60), At: moment(), Label: text(20)})
		}
		switch random.IntN(100) {
		case 0:
			h.Metadata = bytes.Repeat([]byte{1}, random.IntN(5000))
		case 1:
			h.Metadata = []byte(text(150_000))
		default:
			h.Metadata = []byte(text(500))
		}
		o := one{log: fmt.Sprintf("%c%s", 'x'+rune(random.IntN(3)), text(80)), head: h}
		o.packed = p.pack(nil, o.log, &h)
		if all = append(all, o); i%10 == 0 {
			all = all[:max(len(all)-random.IntN(10), 1)]
		}
	}
	for _, o := range all {
		got := p.unpack(o.log, o.packed)
		if !bytes.Equal(got.Metadata, o.head.Metadata) {
			t.Fatalf("the log %q has other metadata", o.log)
		}
		got.Metadata, o.head.Metadata = nil, nil
		if d := cmp.Diff(o.head, got, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("the log %q (-want +got):\n%.3000s", o.log, d)
		}
	}
}

// TestPackedSmall: a head that differs little from the others of its class takes little.
func TestPackedSmall(t *testing.T) {
	var p packer
	size := 0
	const n = 1000
	for i := range n {
		log := fmt.Sprintf("tagent.example.com\x00leader-%d\x00task-%d", i%9, i)
		at := time.Unix(1_800_000_000, int64(i)*7919)
		h := Head{Revision: 4, First: 1, Last: 3, Bytes: 3000,
			Metadata: fmt.Appendf(nil, `{"terms":{"response":60000000000},"ref":{"task":"task-%d"},"state":"completed"}`, i),
			Lists: []Listing{{List: "iagent.example.com\x00" + fmt.Sprint("task-", i)}, {List: "acompleted", At: at},
				{List: fmt.Sprintf("lagent.example.com\x00leader-%d\x00completed", i%9), At: at}}}
		size += len(p.pack(nil, log, &h))
	}
	if size > 70*n {
		t.Errorf("a packed head takes %d bytes", size/n)
	}
	if len(p.texts) > 16 {
		t.Errorf("%d texts are kept for %d heads", len(p.texts), n)
	}
}

// FuzzShorten shortens a text, and lengthens it again.
func FuzzShorten(f *testing.F) {
	f.Add([]byte("before"), []byte("name"), []byte("before before name name"))
	f.Add([]byte(nil), []byte("a"), bytes.Repeat([]byte("a"), 1000))
	for _, id := range []string{"0f8fad5b-d9cb-469f-a165-70867728950e", "0123456789abcdef0", "abcdefgh234567xyz",
		"0f8fad5b-d9cb-469f-a165-70867728950E", "0f8fad5bd-9cb-469f-a165-70867728950e", "abcdefgh1234567xyz"} {
		f.Add([]byte("known"), []byte("name"), []byte(id))
		f.Add([]byte("known"), []byte("name"), []byte("known "+id+" known"))
	}
	f.Add(bytes.Repeat([]byte("ab"), 2000), []byte("b"), bytes.Repeat([]byte("ab"), 40_000))
	f.Fuzz(func(t *testing.T, known, name, text []byte) {
		if len(known) > packText {
			known = known[:packText]
		}
		var m matches
		m.add(known, 0, len(known))
		all := bytes.Join([][]byte{known, name, text}, nil)
		begin := len(known) + len(name)
		line := line{len(known), begin - len(known)/2}
		short := shorten(nil, all, begin, line, &m)
		if got := lengthen(bytes.Clone(all[:begin]), short, line); !bytes.Equal(got, all) {
			t.Fatalf("%q became %q", text, got[begin:])
		}
	})
}
