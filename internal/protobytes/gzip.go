// SPDX-License-Identifier: Apache-2.0

package protobytes

import (
	"compress/gzip"
	"io"

	"connectrpc.com/connect"
)

// Gzip is the name of the compression.
const Gzip = "gzip"

// Gunzip returns the makers of decompressors, and of compressors, for messages of at most max bytes. A decompressor
// ends after one byte more. Connect's own inflate the rest of a too large message, to state its size, and a megabyte
// may be gigabytes.
func Gunzip(max int) (func() connect.Decompressor, func() connect.Compressor) {
	return func() connect.Decompressor { return &gunzip{most: int64(max) + 1} },
		func() connect.Compressor { return gzip.NewWriter(io.Discard) }
}

// gunzip is a connect.Decompressor.
type gunzip struct {
	gzip.Reader
	most, left int64
}

// Reset implements connect.Decompressor.
func (z *gunzip) Reset(r io.Reader) error {
	z.left = z.most
	return z.Reader.Reset(r)
}

// Read implements connect.Decompressor.
func (z *gunzip) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n, err := z.Reader.Read(p[:min(int64(len(p)), z.left)])
	z.left -= int64(n)
	return n, err
}
