// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// create writes a new file. It never replaces one.
func create(name string, write func(io.Writer) error) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// archive returns a function that writes a tar.gz with a program and the files that belong to it, by their paths in a
// folder. Nothing in it depends on who makes it, or when.
func archive(at time.Time, program, folder string, files ...string) func(io.Writer) error {
	return func(w io.Writer) error {
		zipped := gzip.NewWriter(w)
		tarred := tar.NewWriter(zipped)
		add := func(name, path string, mode int64) error {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			header := &tar.Header{Name: name, Mode: mode, Size: int64(len(content)), ModTime: at}
			if err := tarred.WriteHeader(header); err != nil {
				return err
			}
			_, err = tarred.Write(content)
			return err
		}
		err := add(filepath.Base(program), program, 0o755)
		for _, name := range files {
			err = errors.Join(err, add(name, filepath.Join(folder, filepath.FromSlash(name)), 0o644))
		}
		return errors.Join(err, tarred.Close(), zipped.Close())
	}
}

// checksums returns a function that writes the SHA-256 of files in a folder, as sha256sum does.
func checksums(dir string, files []string) func(io.Writer) error {
	return func(w io.Writer) error {
		for _, name := range files {
			sum, err := hash(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(w, "%s  %s\n", sum, name); err != nil {
				return err
			}
		}
		return nil
	}
}

// hash returns the SHA-256 of a file in hex.
func hash(name string) (string, error) {
	content, err := os.ReadFile(name)
	return fmt.Sprintf("%x", sha256.Sum256(content)), err
}
