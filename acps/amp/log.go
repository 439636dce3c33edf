// SPDX-License-Identifier: Apache-2.0

package amp

import (
	"cmp"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
)

// Config is the configuration of a Log.
type Config struct {
	Dir     string // where the files are; it must be there
	Name    string // in the names of the files
	Types   []Type // that are written
	Names   Names  // default: Camel
	MaxSize int64  // bytes of a file from which on it is renamed
	Keep    int    // how many renamed files of each type are kept

	// Resource says where the records come from, as OpenTelemetry names it.
	Resource Object
	// Signer returns what signs the records of audit of a Partner.
	Signer func(aic string) (*Signer, error)
	// Counts outlive the Log.
	Counts *Counts
	Log    *slog.Logger
}

// Counts are how many records of each type there were. They may be used by any number of goroutines at once.
type Counts struct{ written, lost [4]atomic.Uint64 }

// Of returns how many records of a type were written, and how many were lost.
func (c *Counts) Of(t Type) (written, lost uint64) {
	i := slices.Index(Types(), t)
	return c.written[i].Load(), c.lost[i].Load()
}

// queued is how many records may wait to be written.
const queued = 4096

// Log writes records. It may be used by any number of goroutines at once.
type Log struct {
	config Config
	files  map[Type]*file
	failed map[Type]bool // the last record could not be written

	mu     sync.RWMutex // held for writing by Close
	closed bool
	queue  chan Record
	done   chan struct{}
}

// Open returns a Log. Its files are opened when there is a record for them.
func Open(c Config) *Log {
	c.Names = cmp.Or(c.Names, Camel)
	l := &Log{config: c, files: make(map[Type]*file), failed: make(map[Type]bool),
		queue: make(chan Record, queued), done: make(chan struct{})}
	for _, t := range c.Types {
		name := filepath.Join(c.Dir, "amp_"+string(t)+"_"+c.Name+".jsonl")
		l.files[t] = &file{name: name, maxSize: c.MaxSize, keep: c.Keep}
	}
	go l.run()
	return l
}

// Writes reports whether records of a type are written.
func (l *Log) Writes(t Type) bool { return l.files[t] != nil }

// Add has a record written, if those of its type are. It does not wait.
func (l *Log) Add(r Record) {
	if !l.Writes(r.Type) {
		return
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if !l.closed {
		select {
		case l.queue <- r:
			return
		default:
		}
	}
	l.count(&l.config.Counts.lost, r.Type)
}

// Close writes the records that wait, and closes the files.
func (l *Log) Close() {
	l.mu.Lock()
	again := l.closed
	l.closed = true
	if !again {
		close(l.queue)
	}
	l.mu.Unlock()
	<-l.done
}

func (l *Log) run() {
	defer close(l.done)
	for r := range l.queue {
		l.note(r.Type, l.write(&r))
	}
	for _, f := range l.files {
		f.close()
	}
}

// errUnsigned is the reason why a record of audit is not written.
var errUnsigned = errors.New("there is no certificate of the Partner by whose key it could be signed")

func (l *Log) write(r *Record) error {
	o := r.object(l.config.Names, l.config.Resource)
	if r.Type == Audit {
		if l.config.Signer == nil {
			return errUnsigned
		}
		signer, err := l.config.Signer(r.AIC)
		if err != nil {
			return err
		}
		if err := signer.sign(o, l.config.Names); err != nil {
			return err
		}
	}
	return l.files[r.Type].add(append(appendCanonical(nil, o), '\n'))
}

// note counts a record, and logs when records begin to be lost, and when they are written again.
func (l *Log) note(t Type, err error) {
	if err == nil {
		l.count(&l.config.Counts.written, t)
		if l.failed[t] {
			l.config.Log.Info("records for a monitor are written again", "type", string(t))
		}
	} else {
		l.count(&l.config.Counts.lost, t)
		if !l.failed[t] {
			l.config.Log.Warn("a record for a monitor cannot be written; it is lost, as are all until one can", "type",
				string(t), "error", err)
		}
	}
	l.failed[t] = err != nil
}

func (l *Log) count(of *[4]atomic.Uint64, t Type) { of[slices.Index(Types(), t)].Add(1) }
