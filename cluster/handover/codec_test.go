// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/task"
)

// fill sets a value, all fields of it, to something non-zero. Texts need not be UTF-8.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(r.Int64N(1e10), r.Int64N(1e9)).UTC()))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(r.Int64()>>(64-v.Type().Bits()) | 1)
		if r.IntN(2) == 0 {
			v.SetInt(-v.Int())
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.Uint64()>>(64-v.Type().Bits()) | 1)
	case reflect.Float64:
		v.SetFloat(r.NormFloat64())
	case reflect.String:
		v.SetString(fmt.Sprintf("%x\xff", r.Uint32()))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		if depth > 0 {
			fill(r, v.Elem(), depth-1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+r.IntN(3), 4))
		for i := range v.Len() {
			if depth > 0 {
				fill(r, v.Index(i), depth-1)
			}
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(r, k, depth-1)
			fill(r, e, depth-1)
			v.SetMapIndex(k, e)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if !isLeftOut(v.Type().Field(i)) {
				fill(r, v.Field(i), depth-1)
			}
		}
	default:
		panic(v.Kind())
	}
}

// same fails the test unless a value comes back as it was.
func same[T any](t *testing.T, v *T) {
	t.Helper()
	data := encode(nil, v)
	var got T
	rest, err := decode(append(data, 7), &got)
	if err != nil || !bytes.Equal(rest, []byte{7}) {
		t.Fatalf("%T: %v, and %d bytes are left", v, err, len(rest))
	}
	if diff := cmp.Diff(*v, got); diff != "" {
		t.Errorf("%T (-want +got):\n%s", v, diff)
	}
}

// TestIdentity: every field of a call and of a result arrives as it was, also an empty one that is not nil.
func TestIdentity(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var q request
		fill(r, reflect.ValueOf(&q).Elem(), 12)
		same(t, &q)
		var a reply
		fill(r, reflect.ValueOf(&a).Elem(), 12)
		same(t, &a)
	}
	same(t, &request{})
	same(t, &request{Call: &gateway.Call{}})
	same(t, &reply{Result: &gateway.Result{}, Error: []byte{}})
	for i, of := range []reflect.Value{
		reflect.ValueOf(&gateway.Call{}).Elem(), reflect.ValueOf(&gateway.Result{}).Elem(),
	} {
		for f := range of.NumField() { // one field alone
			of.SetZero()
			fill(r, of.Field(f), 12)
			if i == 0 {
				same(t, of.Addr().Interface().(*gateway.Call))
			} else {
				same(t, of.Addr().Interface().(*gateway.Result))
			}
		}
	}
}

// TestNewer: the additions of a newer node are skipped, and fields left out by it are zero.
func TestNewer(t *testing.T) {
	type newer struct {
		Partner string
		More    []string
		Call    *struct{ Leader, Other string }
	}
	data := encode(nil, &newer{"p", []string{"a"}, &struct{ Leader, Other string }{"l", "o"}})
	var q request
	if _, err := decode(data, &q); err != nil || q.Partner != "p" || q.Call.Leader != "l" {
		t.Errorf("%+v, %v", q, err)
	}
}

// FuzzDecode: invalid data is an error, and takes little memory.
func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 4 {
		var q request
		fill(r, reflect.ValueOf(&q).Elem(), 5)
		f.Add(encode(nil, &q))
		var a reply
		fill(r, reflect.ValueOf(&a).Elem(), 5)
		f.Add(encode(nil, &a))
	}
	f.Add([]byte{1, 6, 'R', 'e', 's', 'u', 'l', 't', 9, 0, 0, 0, 1, 1, 5, 'T', 'a', 's', 'k', 's', 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		var q request
		if rest, err := decode(data, &q); err == nil {
			again := encode(nil, &q)
			var twice request
			if _, err := decode(again, &twice); err != nil {
				t.Errorf("what was read cannot be read again: %v (%d bytes are left)", err, len(rest))
			}
		}
		var a reply
		decode(data, &a)
	})
}

// TestSpelledText: a text arrives, and what it was read from stays.
func TestSpelledText(t *testing.T) {
	it := task.Text("a\nb")
	it.Spell(`"a\u000ab"`)
	q := request{Call: &gateway.Call{}}
	q.Call.Message.DataItems = []task.DataItem{it}
	same(t, &q)
	var got request
	if _, err := decode(encode(nil, &q), &got); err != nil {
		t.Fatal(err)
	}
	if json := got.Call.Message.DataItems[0].AppendText(nil); string(json) != `"a\nb"` {
		t.Errorf("the text is written %s", json)
	}
}
