// SPDX-License-Identifier: Apache-2.0

package amp

import (
	"errors"
	"io"
	"os"
	"strconv"
	"sync"
)

// file is a file to which lines are added. It is used by one goroutine.
type file struct {
	name    string
	maxSize int64 // bytes from which on it is renamed
	keep    int   // how many renamed files are kept

	f    *os.File // nil if it is to be opened
	size int64
	torn bool // its last line has no end
}

// adding is held while a file is written to: two configurations that overlap must not both rename it.
var adding sync.Mutex

// add adds a line, which ends with a newline, by one write.
func (f *file) add(line []byte) error {
	adding.Lock()
	defer adding.Unlock()
	if err := f.ready(int64(len(line))); err != nil {
		return err
	}
	if f.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := f.f.Write(line)
	f.size += int64(n)
	if n > 0 {
		f.torn = n < len(line)
	}
	if err != nil {
		f.close()
	}
	return err
}

// ready opens the file if that is needed, and renames it if n bytes more are too many.
func (f *file) ready(n int64) error {
	if f.f != nil && !f.isThere() {
		f.close()
	}
	if err := f.open(); err != nil {
		return err
	}
	if f.size == 0 || f.size+n <= f.maxSize {
		return nil
	}
	f.close()
	if err := f.rotate(); err != nil {
		return err
	}
	return f.open()
}

// isThere reports whether the file that is open still has its name.
func (f *file) isThere() bool {
	opened, err := f.f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(f.name)
	f.size = opened.Size() // another configuration may write to it as well
	return err == nil && os.SameFile(opened, named)
}

// open opens the file for appending. Only its owner and its group may read it: records name callers.
func (f *file) open() error {
	if f.f != nil {
		return nil
	}
	opened, err := os.OpenFile(f.name, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o640)
	if err != nil {
		return err
	}
	info, err := opened.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: f.name, Err: errors.New("it is no regular file")}
	}
	last := []byte{'\n'}
	if err == nil && info.Size() > 0 {
		if _, err = opened.ReadAt(last, info.Size()-1); err == io.EOF {
			err = nil
		}
	}
	if err != nil {
		opened.Close()
		return err
	}
	f.f, f.size, f.torn = opened, info.Size(), last[0] != '\n'
	return nil
}

// rotate renames the file, and those that were renamed before.
func (f *file) rotate() error {
	numbered := func(i int) string { return f.name + "." + strconv.Itoa(i) }
	if f.keep == 0 {
		return os.Remove(f.name)
	}
	for i := f.keep - 1; i > 0; i-- {
		if err := os.Rename(numbered(i), numbered(i+1)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return os.Rename(f.name, numbered(1))
}

func (f *file) close() {
	if f.f != nil {
		_ = f.f.Close() // nothing is buffered
		f.f = nil
	}
}
