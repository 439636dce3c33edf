// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aip-gateway/aip-gateway/internal/bufpool"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble/disk"
)

// intents are the logs begun by an intent, and not appended to since (see replay.Append.Intent). They are in memory,
// and in a file: each has a slot of it, written once, and free again when the log's next append is the system's. So an
// intent costs no commit, and most never reach the database. The file matters only after the death of the process, and
// that takes nothing written. It is never synced.
//
// When a database is opened for writing, and when it is closed, the intents become logs of it.
//
// The file may hold former intents:
//
//   - After a restart of the machine, or a failed sync, it may hold anything. The checksum of a slot depends on the
//     machine's boot id and on mark.losses, so no earlier slot is valid. If a system has no boot id, an intent is an
//     ordinary append.
//   - Free slots have the logs they were used for last. Of such a log, the database has a head. Before the log is
//     dropped, its slot is cleared (forget).
type intents struct {
	path     string // of the file
	memTable uint64 // bytes of a memtable

	mu      sync.Mutex    // guards the fields below; the file is written under it by forget alone
	written sync.Cond     // signals the end of a write of a slot
	loaded  bool          // the slots have the contents of the file at the opening of the store
	disk    *disk.Fenced  // of the open database
	file    vfs.File      // nil if no intents are taken
	mapping *disk.Mapping // of file; nil if there is none
	sum     uint32        // start of the checksums
	slots   []slot
	slotOf  map[string]int      // by log, of the slots with one
	pending int                 // slots with intents
	free    [len(classes)][]int // usable slots of each class; the one used last is used first
}

// slot is the state of a slot.
type slot struct {
	class   int    // in classes
	at      int64  // its place in the file
	log     string // in the file there; empty if it has none
	pending bool   // the log is an intent
	writing bool   // it is being written
	head    head   // of an intent; its Metadata are used again for the next one, and cloned for callers
}

// clone returns the head of an intent.
func (s *slot) clone() head {
	h := s.head
	h.Metadata = bytes.Clone(h.Metadata)
	return h
}

// class is a size of slots. Those of a class are together in the file, at the same place in every file.
type class struct {
	size int // bytes of a slot
	most int // slots of it
}

// classes are the sizes, the smallest first. An intent takes the smallest free slot with room for it.
var classes = [...]class{{4 << 10, 1024}, {32 << 10, 128}, {128 << 10, 16}}

// maxSlotsPart is the part of a memtable that the slots of a class take at most.
const maxSlotsPart = 8

// slotsFor returns the slots of a file, and its size. A database on a small disk has small memtables, and so some
// of the smallest slots alone.
func slotsFor(memTable uint64) (all []slot, size int64) {
	for i, c := range classes {
		n := min(c.most, int(memTable/maxSlotsPart/uint64(c.size)))
		for range n {
			all = append(all, slot{class: i, at: size})
			size += int64(c.size)
		}
		if n < c.most {
			break
		}
	}
	return all, size
}

const intentsName = "INTENTS" // no name of Pebble's

// A slot has a checksum, the lengths of the log's name and of the part after it, and its DueAt as a stamp; then the
// name and the metadata. Of the bits of the first length, slotLists says that the log's lists come between the two, and
// slotHigh are the highest bits of the second length.
const (
	slotHeader = 4 + 2 + 2 + 8
	slotLists  = 1 << 15
	slotHigh   = 7 << slotShift
	slotShift  = 12 // MaxName is below
)

func newIntents(system vfs.FS, dir string, memTable uint64) *intents {
	in := &intents{path: system.PathJoin(dir, intentsName), memTable: memTable, slotOf: make(map[string]int)}
	in.written.L = &in.mu
	return in
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// slotBuffers are for slots being written.
var slotBuffers = bufpool.Pool{Largest: classes[len(classes)-1].size}

// add makes an intent of a log with a head. It returns false if this must be an ordinary append: it is too large, or no
// slot is free. The caller holds log.write.
func (in *intents) add(log string, h *head) (ok bool, err error) {
	n, at, ok := in.take(slotHeader + len(log) + listsLen(log, h.Lists) + len(h.Metadata))
	if !ok {
		return false, nil
	}
	buf := slotBuffers.Get()
	*buf = appendSlot(*buf, in.sum, log, h)
	err = in.write(*buf, at)
	slotBuffers.Put(buf)

	in.mu.Lock()
	defer in.mu.Unlock()
	s := &in.slots[n]
	s.writing = false
	in.written.Broadcast()
	if err != nil { // the fence is up, and this file is not used again
		return false, err
	}
	if s.log != "" {
		delete(in.slotOf, s.log)
	}
	in.slotOf[log] = n
	metadata := append(s.head.Metadata[:0], h.Metadata...)
	s.log, s.pending, s.head = log, true, *h
	s.head.Metadata = metadata
	in.pending++
	return true, nil
}

// take takes a free slot of at least size bytes, and returns its place in the file. It returns false if there is none.
func (in *intents) take(size int) (n int, at int64, ok bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.file == nil {
		return 0, 0, false
	}
	for i, c := range classes {
		if free := in.free[i]; size <= c.size && len(free) > 0 {
			n = free[len(free)-1]
			in.free[i] = free[:len(free)-1]
			in.slots[n].writing = true
			return n, in.slots[n].at, true
		}
	}
	return 0, 0, false
}

// write writes a slot: through memory, or else by a system call. It is called without in.mu.
func (in *intents) write(b []byte, at int64) error {
	if err := in.disk.Err(); err != nil {
		return err
	}
	if in.mapping.Write(b, at) {
		return nil
	}
	return in.disk.WriteAt(in.file, b, at)
}

// complete ends the intent of a log, with its next append being the system's.
func (in *intents) complete(log string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if n, ok := in.slotOf[log]; ok && in.slots[n].pending {
		s := &in.slots[n]
		s.pending = false
		in.pending--
		in.free[s.class] = append(in.free[s.class], n)
	}
}

// forget clears the slot with a log, if there is one. The log is about to be dropped.
func (in *intents) forget(log string) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	n, ok := in.slotOf[log]
	for ok && in.slots[n].writing {
		in.written.Wait()
		n, ok = in.slotOf[log]
	}
	if !ok {
		return nil
	}
	delete(in.slotOf, log)
	in.slots[n].log = ""
	return in.disk.WriteAt(in.file, make([]byte, slotHeader), in.slots[n].at)
}

// get returns the head of an intent.
func (in *intents) get(log string) (_ head, ok bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	n, ok := in.slotOf[log]
	if !ok || !in.slots[n].pending {
		return head{}, false
	}
	return in.slots[n].clone(), true
}

// all yields the slots with intents. The caller holds in.mu.
func (in *intents) all(yield func(*slot) bool) {
	left := in.pending
	for n := 0; left > 0; n++ {
		if !in.slots[n].pending {
			continue
		}
		left--
		if !yield(&in.slots[n]) {
			return
		}
	}
}

// list returns the first intents whose names begin with prefix and come after a name, so many at most, in the order of
// the names.
func (in *intents) list(prefix, after string, most int) (entries []replay.Entry) {
	in.mu.Lock()
	defer in.mu.Unlock()
	var found []*slot
	for s := range in.all {
		if s.log > after && strings.HasPrefix(s.log, prefix) {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b *slot) int { return cmp.Compare(a.log, b.log) })
	for _, s := range found[:min(most, len(found))] {
		entries = append(entries, replay.Entry{Log: s.log, Head: s.clone().Head})
	}
	return entries
}

// due returns the intents' would-be keys in the index by DueAt, those in [lower, upper), in order.
func (in *intents) due(lower, upper []byte) (keys [][]byte) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for s := range in.all {
		if s.head.DueAt.IsZero() {
			continue
		}
		key := appendDueKey(nil, stampOf(s.head.DueAt), s.log)
		if bytes.Compare(lower, key) <= 0 && bytes.Compare(key, upper) < 0 {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, bytes.Compare)
	return keys
}

// open begins to use a database. If it can be written, the intents there are become logs of it, and others are taken.
func (in *intents) open(g *generation, mode openMode, boot string) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closeFile()
	sum := binary.AppendUvarint([]byte(boot), g.mark.losses)
	in.disk, in.sum = g.disk, crc32.Checksum(sum, castagnoli)
	if !in.loaded {
		if err := in.load(g); err != nil {
			return err
		}
		in.loaded = true
	}
	if mode == openRead {
		return nil
	}
	if err := in.store(g); err != nil {
		return err
	}
	slots, size := slotsFor(in.memTable)
	if boot == "" || size == 0 {
		return nil
	}
	if !g.disk.Try(func() (err error) {
		if err := g.disk.FS.Remove(in.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		in.file, err = g.disk.FS.OpenReadWrite(in.path, vfs.WriteCategoryUnspecified)
		return err
	}) {
		return g.disk.Err()
	}
	_ = in.file.Preallocate(0, size)                              // not all systems can
	if _, err := in.file.WriteAt([]byte{0}, size-1); err == nil { // only existing bytes of a file can be mapped
		in.mapping = disk.MapFile(in.file, size)
	}
	in.slots = slots
	for n := len(slots) - 1; n >= 0; n-- {
		free := &in.free[slots[n].class]
		*free = append(*free, n)
	}
	return nil
}

// load reads the file left by another process. It makes intents of its valid slots with logs not in the database. The
// caller holds in.mu.
func (in *intents) load(g *generation) error {
	f, err := g.disk.FS.Open(in.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	places, size := slotsFor(math.MaxUint64) // whatever was the size of a memtable
	all, err := io.ReadAll(io.LimitReader(f, size))
	if err != nil {
		return err
	}
	for _, s := range places {
		b := all[min(s.at, int64(len(all))):]
		log, h, ok := parseSlot(b[:min(len(b), classes[s.class].size)], in.sum)
		if !ok {
			continue
		}
		has, err := hasHead(g.db, log)
		if err != nil {
			return err
		}
		if !has {
			in.slotOf[log] = len(in.slots)
			in.slots = append(in.slots, slot{log: log, pending: true, head: h})
			in.pending++
		}
	}
	return nil
}

// store makes logs of the intents, and forgets all slots. The caller holds in.mu.
func (in *intents) store(g *generation) error {
	if in.pending > 0 {
		b := g.db.NewBatch()
		defer b.Close()
		for s := range in.all {
			setIntent(b, s.log, &s.head)
		}
		if err := g.commit(b, false); err != nil {
			return err
		}
	}
	in.slots, in.free, in.pending = nil, [len(classes)][]int{}, 0
	clear(in.slotOf)
	return nil
}

// end makes logs of the intents of a database about to be closed. No other call uses the store any more.
func (in *intents) end(g *generation) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.store(g)
}

// close ends the use of the file.
func (in *intents) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closeFile()
}

func (in *intents) closeFile() {
	in.mapping.Close()
	if in.file != nil {
		_ = in.file.Close() // its bytes are the system's
	}
	in.file, in.mapping = nil, nil
}

// appendSlot writes the contents of the slot of an intent. The checksum begins with sum.
func appendSlot(b []byte, sum uint32, log string, h *head) []byte {
	b = append(b, make([]byte, 4+2+2)...)
	b = binary.LittleEndian.AppendUint64(b, uint64(stampOf(h.DueAt)))
	b = append(b, log...)
	bits := uint16(len(log))
	if len(h.Lists) > 0 {
		b = appendLists(b, log, h.Lists)
		bits |= slotLists
	}
	b = append(b, h.Metadata...)
	rest := len(b) - slotHeader - len(log)
	binary.LittleEndian.PutUint16(b[4:], bits|uint16(rest>>16<<slotShift))
	binary.LittleEndian.PutUint16(b[6:], uint16(rest))
	binary.LittleEndian.PutUint32(b, crc32.Update(sum, castagnoli, b[4:]))
	return b
}

// parseSlot reads a slot. It returns false if it has no valid intent. The metadata are a part of b.
func parseSlot(b []byte, sum uint32) (log string, h head, ok bool) {
	if len(b) < slotHeader {
		return "", head{}, false
	}
	bits, rest := binary.LittleEndian.Uint16(b[4:]), int(binary.LittleEndian.Uint16(b[6:]))
	rest |= int(bits&slotHigh) >> slotShift << 16
	name := int(bits &^ (slotLists | slotHigh))
	end := slotHeader + name + rest
	if name == 0 || name > replay.MaxName || end > len(b) ||
		binary.LittleEndian.Uint32(b) != crc32.Update(sum, castagnoli, b[4:end]) {
		return "", head{}, false
	}
	log = string(b[slotHeader : slotHeader+name])
	h = head{pending: true, Head: replay.Head{Revision: 1, First: 1}} // as after the first append
	h.DueAt = stamp(binary.LittleEndian.Uint64(b[8:])).time()
	p := numbers{replay.Numbers{Rest: b[slotHeader+name : end : end]}}
	if bits&slotLists != 0 {
		h.Lists = p.lists(log)
	}
	h.Metadata = p.Rest
	return log, h, !p.Failed
}
