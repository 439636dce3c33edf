// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"bytes"
	"io"
)

// framing is the way of delimiting the content of an answer.
type framing uint8

const (
	untilClose framing = iota
	sized              // by its Content-Length
	chunked
)

// body is the progress of reading the content of the answer.
type body struct {
	framing framing
	ended   bool
	left    int64     // bytes of the content, or of the chunk, still to be read
	place   chunkPart // the part to come when none are left
	excess  int64     // bytes of the chunks so far outside of content, beyond the need of a chunk
	trailer int       // bytes of the trailer so far
}

// chunkPart is a part of a chunked body (RFC 9112, section 7.1).
type chunkPart uint8

const (
	chunkSize   chunkPart = iota // a line with the size of a chunk
	chunkEnd                     // the end of a line, after the content of a chunk
	trailerLine                  // the lines after the last chunk
)

const (
	maxChunkLine = 1 << 10  // bytes of the line with a chunk's size
	maxExcess    = 16 << 10 // bytes of an answer's chunks beyond their need
)

// Read reads the content of the answer, as io.Reader. After ErrStopped and Resume it can be called again.
func (c *Conn) Read(p []byte) (n int, err error) {
	switch {
	case c.ended:
		return 0, io.EOF
	case len(p) == 0:
		return 0, nil
	case c.framing == chunked:
		return c.readChunks(p)
	case c.framing == sized:
		if n, err = c.readContent(p); c.left == 0 && err == nil {
			c.ended = true
		}
		return n, err
	}
	c.left = int64(len(p))
	if n, err = c.readContent(p); err == io.ErrUnexpectedEOF && c.err == io.EOF {
		c.ended, err = true, io.EOF
	}
	return n, err
}

// ReachEnd reports whether the content has been read, and its end has arrived after it. It does not wait.
func (c *Conn) ReachEnd() bool {
	for c.framing == chunked && !c.ended && c.left == 0 && c.lineArrived() {
		if c.nextChunk() != nil {
			return false
		}
	}
	return c.ended
}

// readContent reads content, if some is left.
func (c *Conn) readContent(p []byte) (n int, err error) {
	if int64(len(p)) > c.left {
		p = p[:c.left]
	}
	switch {
	case c.start < c.end:
		n = copy(p, c.buf[c.start:c.end])
		c.start += n
	case len(p) >= smallBuffer:
		n, err = c.read(p)
	default:
		if err = c.fill(); err == nil {
			n = copy(p, c.buf[c.start:c.end])
			c.start += n
		}
	}
	c.left -= int64(n)
	return n, unexpected(err)
}

// readChunks reads the arrived part of the chunks, and waits only if there is none.
func (c *Conn) readChunks(p []byte) (n int, err error) {
	for n < len(p) {
		if n > 0 && (c.left > 0 && c.start == c.end || c.left == 0 && !c.lineArrived()) {
			return n, nil
		}
		if c.left == 0 {
			if err := c.nextChunk(); err != nil {
				return n, err
			}
			if c.ended {
				return n, io.EOF
			}
			continue
		}
		m, err := c.readContent(p[n:])
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// lineArrived reports whether a whole line is in the buffer.
func (c *Conn) lineArrived() bool { return bytes.IndexByte(c.buf[c.start:c.end], '\n') >= 0 }

// nextChunk reads one line between the contents of chunks.
func (c *Conn) nextChunk() error {
	switch c.place {
	case chunkEnd:
		line, err := c.line(maxChunkLine)
		if err != nil {
			return err
		}
		if len(line) > 0 {
			return malformed("a chunk is longer than its size")
		}
		c.place = chunkSize
	case chunkSize:
		line, err := c.line(maxChunkLine)
		if err != nil {
			return err
		}
		if c.left, err = sizeOf(line); err != nil {
			return err
		}
		// Chunks with nothing but extensions, or a few bytes each in long lines, are an attack.
		c.excess = max(c.excess+int64(len(line))+2-16-2*c.left, 0)
		if c.excess > maxExcess {
			return errTooLarge
		}
		if c.place = chunkEnd; c.left == 0 {
			c.place = trailerLine
		}
	case trailerLine:
		line, err := c.line(maxTrailer - c.trailer)
		if err != nil {
			return err
		}
		c.trailer += len(line) + len("\r\n")
		if len(line) == 0 {
			c.ended = true
			return nil
		}
		_, _, err = field(line)
		return err
	}
	return nil
}

// sizeOf reads the size in the line of a chunk, and leaves the extensions after it.
func sizeOf(line []byte) (n int64, _ error) {
	size, extensions, _ := bytes.Cut(line, []byte{';'})
	size = bytes.TrimRight(size, " \t")
	if len(size) == 0 || len(size) > 15 || !printable(extensions) {
		return 0, malformed("the size of a chunk is invalid")
	}
	for _, b := range size {
		switch b = lower(b); {
		case digit(b):
			n = n<<4 | int64(b-'0')
		case 'a' <= b && b <= 'f':
			n = n<<4 | int64(b-'a'+10)
		default:
			return 0, malformed("the size of a chunk is invalid")
		}
	}
	return n, nil
}

// Length returns the length of the whole content, in bytes; -1 if the server has not stated it.
func (c *Conn) Length() int64 {
	if c.framing == sized || c.ended {
		return c.length
	}
	return -1
}
