// SPDX-License-Identifier: Apache-2.0

package acs

import (
	"io"
	"os"
)

// ReadFile reads an ACS, or a card, in a file, up to one byte more than it may have.
func ReadFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxSize+1))
}
