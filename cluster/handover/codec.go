// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync"
	"time"
)

// The form of data between nodes. A struct is the number of its non-zero fields, and each of those: its name, its size
// in four bytes, and its value; so a node skips the additions of a newer one. A number is a varint. Text and bytes are
// their size and themselves; for what may be nil, the size is one more, and 0 is nil.

// codec writes and reads the values of one type.
type codec struct {
	write func(to []byte, v reflect.Value) []byte
	read  func(from *reader, v reflect.Value)
}

var (
	codecsMutex sync.RWMutex
	codecs      = make(map[reflect.Type]*codec)
)

// codecOf returns the codec of a type. It panics if the type is no data.
func codecOf(t reflect.Type) *codec {
	codecsMutex.RLock()
	c := codecs[t]
	codecsMutex.RUnlock()
	if c == nil {
		codecsMutex.Lock()
		defer codecsMutex.Unlock()
		c = makeCodec(t)
	}
	return c
}

// reader reads the form. After the first error it reads zeros.
type reader struct {
	data   []byte
	err    error
	budget int // bytes of memory still allowed
}

var errForm = errors.New("the data of another node cannot be read")

func (r *reader) fail() { r.data, r.err = nil, errForm }

func (r *reader) number() uint64 {
	n, used := binary.Uvarint(r.data)
	if used <= 0 {
		r.fail()
		return 0
	}
	r.data = r.data[used:]
	return n
}

// size reads a number of things that take a byte at least.
func (r *reader) size() int {
	n := r.number()
	if n > uint64(len(r.data)) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.data) {
		r.fail()
		return nil
	}
	b := r.data[:n:n]
	r.data = r.data[n:]
	return b
}

// take counts memory.
func (r *reader) take(n int) bool {
	if r.budget -= n; r.budget < 0 {
		r.fail()
	}
	return r.err == nil
}

// optional reads the size of a value that may be nil.
func (r *reader) optional() (n int, ok bool) {
	size := r.number()
	if size == 0 || size-1 > uint64(len(r.data)) {
		if size != 0 {
			r.fail()
		}
		return 0, false
	}
	return int(size - 1), true
}

// encode appends a value to a buffer.
func encode[T any](to []byte, v *T) []byte {
	return codecOf(reflect.TypeFor[T]()).write(to, reflect.ValueOf(v).Elem())
}

// decode reads a value, and returns the data after it. Bytes of the value, but not its texts, are views of the data.
// decode takes memory in proportion to the size of the data. After an error, the fields of a struct standing whole in
// the data are set.
func decode[T any](data []byte, v *T) (rest []byte, err error) {
	r := &reader{data: data, budget: 64*len(data) + 1<<16}
	codecOf(reflect.TypeFor[T]()).read(r, reflect.ValueOf(v).Elem())
	return r.data, r.err
}

// makeCodec makes the codec of a type, and of the types in it. The mutex is held.
func makeCodec(t reflect.Type) *codec {
	if c := codecs[t]; c != nil {
		return c
	}
	c := new(codec)
	codecs[t] = c // a type may have itself
	switch {
	case t == reflect.TypeFor[time.Time]():
		c.write, c.read = writeTime, readTime
		return c
	case t == reflect.TypeFor[[]byte]():
		c.write, c.read = writeBytes, readBytes
		return c
	}
	switch t.Kind() {
	case reflect.Bool:
		c.write = func(to []byte, v reflect.Value) []byte {
			if v.Bool() {
				return append(to, 1)
			}
			return append(to, 0)
		}
		c.read = func(from *reader, v reflect.Value) { v.SetBool(from.number() != 0) }
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		c.write = func(to []byte, v reflect.Value) []byte { return binary.AppendVarint(to, v.Int()) }
		c.read = func(from *reader, v reflect.Value) {
			n := from.number()
			whole := int64(n>>1) ^ -int64(n&1)
			if v.OverflowInt(whole) {
				from.fail()
				return
			}
			v.SetInt(whole)
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		c.write = func(to []byte, v reflect.Value) []byte { return binary.AppendUvarint(to, v.Uint()) }
		c.read = func(from *reader, v reflect.Value) {
			n := from.number()
			if v.OverflowUint(n) {
				from.fail()
				return
			}
			v.SetUint(n)
		}
	case reflect.Float64:
		c.write = func(to []byte, v reflect.Value) []byte {
			return binary.LittleEndian.AppendUint64(to, math.Float64bits(v.Float()))
		}
		c.read = func(from *reader, v reflect.Value) {
			if b := from.bytes(8); b != nil {
				v.SetFloat(math.Float64frombits(binary.LittleEndian.Uint64(b)))
			}
		}
	case reflect.String:
		c.write = func(to []byte, v reflect.Value) []byte {
			to = binary.AppendUvarint(to, uint64(v.Len()))
			return append(to, v.String()...)
		}
		c.read = func(from *reader, v reflect.Value) { v.SetString(string(from.bytes(from.size()))) }
	case reflect.Pointer:
		c.pointer(t)
	case reflect.Slice:
		c.slice(t)
	case reflect.Map:
		c.maps(t)
	case reflect.Struct:
		c.structs(t)
	default:
		panic(fmt.Sprintf("%s cannot be sent to another node", t))
	}
	return c
}

func writeBytes(to []byte, v reflect.Value) []byte {
	if v.IsNil() {
		return append(to, 0)
	}
	to = binary.AppendUvarint(to, uint64(v.Len())+1)
	return append(to, v.Bytes()...)
}

func readBytes(from *reader, v reflect.Value) {
	if n, ok := from.optional(); ok {
		v.SetBytes(from.bytes(n))
	}
}

func writeTime(to []byte, v reflect.Value) []byte {
	t := v.Interface().(time.Time)
	b, err := t.MarshalBinary()
	if err != nil { // a zone that is not a whole number of minutes
		b, _ = t.UTC().MarshalBinary()
	}
	return append(append(to, byte(len(b))), b...)
}

func readTime(from *reader, v reflect.Value) {
	if v.Addr().Interface().(*time.Time).UnmarshalBinary(from.bytes(from.size())) != nil {
		from.fail()
	}
}

func (c *codec) pointer(t reflect.Type) {
	of := makeCodec(t.Elem())
	c.write = func(to []byte, v reflect.Value) []byte {
		if v.IsNil() {
			return append(to, 0)
		}
		return of.write(append(to, 1), v.Elem())
	}
	c.read = func(from *reader, v reflect.Value) {
		if from.number() != 0 && from.take(int(t.Elem().Size())) {
			v.Set(reflect.New(t.Elem()))
			of.read(from, v.Elem())
		}
	}
}

func (c *codec) slice(t reflect.Type) {
	of := makeCodec(t.Elem())
	c.write = func(to []byte, v reflect.Value) []byte {
		if v.IsNil() {
			return append(to, 0)
		}
		to = binary.AppendUvarint(to, uint64(v.Len())+1)
		for i := range v.Len() {
			to = of.write(to, v.Index(i))
		}
		return to
	}
	c.read = func(from *reader, v reflect.Value) {
		n, ok := from.optional()
		if !ok || !from.take(n*int(t.Elem().Size())) {
			return
		}
		v.Set(reflect.MakeSlice(t, n, n))
		for i := 0; i < n && from.err == nil; i++ {
			of.read(from, v.Index(i))
		}
	}
}

func (c *codec) maps(t reflect.Type) {
	key, of := makeCodec(t.Key()), makeCodec(t.Elem())
	c.write = func(to []byte, v reflect.Value) []byte {
		if v.IsNil() {
			return append(to, 0)
		}
		to = binary.AppendUvarint(to, uint64(v.Len())+1)
		for k, e := range v.Seq2() {
			to = of.write(key.write(to, k), e)
		}
		return to
	}
	c.read = func(from *reader, v reflect.Value) {
		n, ok := from.optional()
		if !ok || !from.take(n*int(t.Key().Size()+t.Elem().Size())) {
			return
		}
		v.Set(reflect.MakeMap(t))
		for i := 0; i < n && from.err == nil; i++ {
			k, e := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
			key.read(from, k)
			of.read(from, e)
			v.SetMapIndex(k, e)
		}
	}
}

// field is a field of a struct.
type field struct {
	name string
	at   int
	of   *codec
}

// isLeftOut reports whether a field is not sent: its type says that a value without it says the same.
func isLeftOut(f reflect.StructField) bool { return !f.IsExported() && f.Tag.Get("json") == "-" }

func (c *codec) structs(t reflect.Type) {
	fields, byName := make([]field, 0, t.NumField()), make(map[string]*field, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		if isLeftOut(f) {
			continue
		}
		if !f.IsExported() {
			panic(fmt.Sprintf("%s of %s cannot be sent to another node: it is not exported", f.Name, t))
		}
		fields = append(fields, field{f.Name, i, makeCodec(f.Type)})
		byName[f.Name] = &fields[len(fields)-1]
	}
	c.write = func(to []byte, v reflect.Value) []byte {
		count := len(to)
		to = append(to, 0)
		for i := range fields {
			f := &fields[i]
			value := v.Field(f.at)
			if value.IsZero() {
				continue
			}
			to[count]++
			to = append(append(to, byte(len(f.name))), f.name...)
			begin := len(to)
			to = f.of.write(append(to, 0, 0, 0, 0), value)
			binary.LittleEndian.PutUint32(to[begin:], uint32(len(to)-begin-4))
		}
		return to
	}
	c.read = func(from *reader, v reflect.Value) {
		for range from.size() {
			name, size := from.bytes(from.size()), from.bytes(4)
			if from.err != nil {
				return
			}
			value := from.bytes(int(binary.LittleEndian.Uint32(size)))
			f := byName[string(name)]
			if f == nil || from.err != nil {
				continue
			}
			in := reader{data: value, budget: from.budget}
			f.of.read(&in, v.Field(f.at))
			if from.budget = in.budget; in.err != nil || len(in.data) > 0 {
				from.fail()
			}
		}
	}
}
