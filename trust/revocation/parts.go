// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/aip-gateway/aip-gateway/internal/pemtext"
)

// A location gives one list in DER, or any text with lists in PEM: all of these count.

// maxLists is the greatest number of lists of a location.
const maxLists = 256

// readLists reads the lists of r, together up to max bytes. It calls each for each of them, and each reads the list by
// its argument: the argument writes it in DER to copied, unless copied is nil. An unreadable list does not keep those
// behind it from being read. The error is about the first one.
func readLists(r io.Reader, max int64, each func(read func(copied io.Writer) (*list, error)) error) error {
	text := bufio.NewReaderSize(r, 32<<10)
	left := max
	part := func(r io.Reader) error {
		return each(func(copied io.Writer) (*list, error) {
			der := bufio.NewReaderSize(r, 32<<10)
			l, size, err := readList(der, left, copied)
			if left -= size; err != nil {
				return nil, err
			}
			if _, more := der.ReadByte(); !errors.Is(more, io.EOF) {
				return nil, cmp.Or(more, errSyntax)
			}
			return l, nil
		})
	}
	if start, _ := text.Peek(2); len(start) == 2 && start[0] == 0x30 && start[1] >= 0x80 {
		return part(text)
	}
	limited := &io.LimitedReader{R: text, N: 2 * max} // PEM is larger than its contents
	p := &pemParts{lines: bufio.NewScanner(limited)}
	p.lines.Buffer(nil, maxPart)
	var failed error
	n := 0
	for p.next() {
		if n++; n > maxLists {
			return cmp.Or(failed, fmt.Errorf("it has more than %d lists", maxLists))
		}
		if err := part(base64.NewDecoder(base64.StdEncoding, p)); err != nil && failed == nil {
			if failed = err; n > 1 {
				failed = fmt.Errorf("list %d of the file: %w", n, err)
			}
		}
	}
	switch err := p.lines.Err(); {
	case limited.N <= 0:
		return fmt.Errorf("it has more than %d bytes of text, which is the limit", 2*max)
	case failed != nil, err != nil:
		return cmp.Or(failed, err)
	case n == 0 && p.others:
		return errors.New("it is PEM, but no " + pemtext.List[0])
	case n == 0:
		return errSyntax
	}
	return nil
}

// pemParts reads the contents of the blocks with lists in a PEM text: next begins one, with io.EOF at its end.
type pemParts struct {
	lines  *bufio.Scanner
	behind []byte // the rest of the line behind the end of a block, or the line that has ended it too early
	body   []byte // the rest of the line being read
	inside bool   // a block
	others bool   // there are blocks without lists
}

const pemBegin, pemEnd = "-----BEGIN ", "-----END "

// next goes to the next list. It returns false if there is none.
func (p *pemParts) next() bool {
	p.inside, p.body = false, nil
	for {
		line, ok := p.line()
		if !ok {
			return false
		}
		rest, begins := bytes.CutPrefix(line, []byte(pemBegin))
		if label, ok := bytes.CutSuffix(rest, []byte("-----")); begins && ok {
			if slices.Contains(pemtext.List, string(label)) {
				p.inside = true
				return true
			}
			p.others = true
		}
	}
}

// line returns the next line, without the space around it.
func (p *pemParts) line() (line []byte, ok bool) {
	if line = p.behind; line == nil {
		if !p.lines.Scan() {
			return nil, false
		}
		line = bytes.TrimPrefix(bytes.TrimSpace(p.lines.Bytes()), []byte("\ufeff"))
	}
	p.behind = nil
	if end := bytes.Index(line, []byte("-----"+pemBegin)); end >= 0 { // files were put together
		line, p.behind = line[:end+5], line[end+5:]
	}
	return line, true
}

func (p *pemParts) Read(b []byte) (int, error) {
	for len(p.body) == 0 {
		if !p.inside {
			return 0, io.EOF
		}
		line, ok := p.line()
		switch {
		case !ok:
			p.inside = false
			return 0, cmp.Or(p.lines.Err(), io.ErrUnexpectedEOF)
		case bytes.HasPrefix(line, []byte(pemEnd)):
			p.inside = false
			return 0, io.EOF
		case bytes.HasPrefix(line, []byte(pemBegin)):
			p.inside, p.behind = false, line
			return 0, io.ErrUnexpectedEOF
		}
		p.body = line
	}
	n := copy(b, p.body)
	p.body = p.body[n:]
	return n, nil
}
