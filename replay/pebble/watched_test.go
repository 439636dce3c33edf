// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"errors"
	"path"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aip-gateway/aip-gateway/replay/pebble/wal/segment"
)

// watchedFS is a disk reporting the operations on the names and contents of its files, in one word: "create", "remove",
// "rename", "write", "sync" or "close". With an error from watch the operation fails; half of a write has been done
// then.
type watchedFS struct {
	vfs.FS
	watch func(op, name string) error
}

// ofLog watches the files of the journal, and the file the store tries to find out whether the disk works.
func ofLog(watch func(op string) error) func(op, name string) error {
	return func(op, name string) error {
		if path.Ext(name) != segment.Ext && path.Base(name) != probeName {
			return nil
		}
		return watch(op)
	}
}

func (fs watchedFS) Unwrap() vfs.FS { return fs.FS }

func (fs watchedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := fs.watch("create", name); err != nil {
		return nil, err
	}
	f, err := fs.FS.Create(name, category)
	return &watchedFile{f, name, fs.watch}, err
}

func (fs watchedFS) OpenReadWrite(
	name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption,
) (vfs.File, error) {
	if err := fs.watch("create", name); err != nil {
		return nil, err
	}
	f, err := fs.FS.OpenReadWrite(name, category, opts...)
	return &watchedFile{f, name, fs.watch}, err
}

func (fs watchedFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := fs.watch("create", newname); err != nil {
		return nil, err
	}
	f, err := fs.FS.ReuseForWrite(oldname, newname, category)
	return &watchedFile{f, newname, fs.watch}, err
}

func (fs watchedFS) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	return &watchedFile{f, name, fs.watch}, err
}

func (fs watchedFS) Remove(name string) error {
	if err := fs.watch("remove", name); err != nil {
		return err
	}
	return fs.FS.Remove(name)
}

func (fs watchedFS) Rename(oldname, newname string) error {
	if err := fs.watch("rename", newname); err != nil {
		return err
	}
	return fs.FS.Rename(oldname, newname)
}

type watchedFile struct {
	vfs.File
	name  string
	watch func(op, name string) error
}

func (f *watchedFile) Write(p []byte) (int, error) {
	if err := f.watch("write", f.name); err != nil {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, err
	}
	return f.File.Write(p)
}

func (f *watchedFile) WriteAt(p []byte, at int64) (int, error) {
	if err := f.watch("write", f.name); err != nil {
		n, _ := f.File.WriteAt(p[:len(p)/2], at)
		return n, err
	}
	return f.File.WriteAt(p, at)
}

func (f *watchedFile) Sync() error {
	if err := f.watch("sync", f.name); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *watchedFile) SyncData() error {
	if err := f.watch("sync", f.name); err != nil {
		return err
	}
	return f.File.SyncData()
}

func (f *watchedFile) Close() error {
	return errors.Join(f.watch("close", f.name), f.File.Close())
}
