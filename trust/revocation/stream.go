// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"hash"
	"io"

	"golang.org/x/crypto/cryptobyte"
	der "golang.org/x/crypto/cryptobyte/asn1"
)

// A list is read once, as a stream: of each entry its serial number is kept, and the signed part is hashed. Only the
// signed part of a list signed by Ed25519 is held, since that signature needs it twice.

// maxPart is the largest part of a list held while it is read, in bytes: the part before its entries, one entry, or the
// part behind them.
const maxPart = 64 << 10

// hashes are the hashes of the accepted signatures, beside Ed25519.
var hashes = map[x509.SignatureAlgorithm]crypto.Hash{
	x509.SHA256WithRSA: crypto.SHA256, x509.SHA384WithRSA: crypto.SHA384, x509.SHA512WithRSA: crypto.SHA512,
	x509.SHA256WithRSAPSS: crypto.SHA256, x509.SHA384WithRSAPSS: crypto.SHA384, x509.SHA512WithRSAPSS: crypto.SHA512,
	x509.ECDSAWithSHA256: crypto.SHA256, x509.ECDSAWithSHA384: crypto.SHA384, x509.ECDSAWithSHA512: crypto.SHA512,
}

// element is the beginning of an element in DER.
type element struct {
	tag    der.Tag
	header []byte // until the next one is begun
	size   int64  // of its contents, in bytes
}

func (e *element) total() int64 { return int64(len(e.header)) + e.size }

// stream reads elements in DER.
type stream struct {
	r    *bufio.Reader
	left int64 // bytes still allowed to be read
	to   io.Writer

	header [6]byte // of the last element
}

// read reads n bytes into b, and may enlarge it.
func (s *stream) read(b []byte, n int64) ([]byte, error) {
	if n > maxPart {
		return nil, errSyntax
	}
	if s.left -= n; s.left < 0 {
		return nil, errTooLarge
	}
	if int64(cap(b)) < n {
		b = make([]byte, n)
	}
	b = b[:n]
	if _, err := io.ReadFull(s.r, b); err != nil {
		return nil, cut(err)
	}
	_, err := s.to.Write(b)
	return b, err
}

// begin reads the beginning of an element.
func (s *stream) begin() (e element, err error) {
	b, err := s.read(s.header[:0], 2)
	if err != nil {
		return e, err
	}
	e = element{tag: der.Tag(b[0]), header: b, size: int64(b[1])}
	if b[1] < 0x80 {
		return e, nil
	}
	digits := int64(b[1] & 0x7f)
	if digits == 0 || digits > 4 {
		return e, errSyntax
	}
	length, err := s.read(s.header[2:2], digits)
	if err != nil {
		return e, err
	}
	e.header = s.header[:2+digits]
	if length[0] == 0 {
		return e, errSyntax
	}
	e.size = 0
	for _, digit := range length {
		e.size = e.size<<8 | int64(digit)
	}
	if e.size < 0x80 {
		return e, errSyntax
	}
	return e, nil
}

// cut makes an early end one of syntax.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errSyntax
	}
	return err
}

var errTooLarge = errors.New("it is larger than the limit")

// readList reads a list in DER of up to max bytes, and writes it to copied, unless that is nil. It does not verify its
// signature. Bytes behind the list stay in r. size is the number of bytes read.
func readList(r *bufio.Reader, max int64, copied io.Writer) (l *list, size int64, err error) {
	if copied == nil {
		copied = io.Discard
	}
	s := &stream{r: r, left: max, to: copied}
	l, err = s.list()
	if errors.Is(err, errTooLarge) {
		err = fmt.Errorf("it has more than %d bytes, which is the limit", max)
	}
	return l, max - s.left, err
}

// list reads a list.
func (s *stream) list() (*list, error) {
	outer, err := s.begin()
	if err != nil {
		return nil, err
	}
	if outer.tag != der.SEQUENCE {
		return nil, errSyntax
	}
	if outer.size > s.left {
		return nil, errTooLarge
	}
	tbs, err := s.begin()
	if err != nil {
		return nil, err
	}
	if tbs.tag != der.SEQUENCE || tbs.total() > outer.size {
		return nil, errSyntax
	}
	tbs.header = bytes.Clone(tbs.header)
	signature := outer.size - tbs.total() // and its algorithm
	head, next, left, err := s.head(tbs.size)
	if err != nil {
		return nil, err
	}
	l := &list{}
	digest, err := l.sink(head)
	if err != nil {
		return nil, err
	}
	copied := s.to
	s.to = io.MultiWriter(copied, digest)
	for _, part := range [][]byte{tbs.header, head, next.header} {
		_, _ = digest.Write(part)
	}
	var tail []byte
	if next.tag == der.SEQUENCE {
		if err := l.readEntries(s, next.size); err != nil {
			return nil, err
		}
		left -= next.total()
	} else if next.header != nil {
		rest, err := s.read(nil, left-int64(len(next.header)))
		if err != nil {
			return nil, err
		}
		tail, left = append(next.header, rest...), 0
	}
	if left > 0 {
		if tail, err = s.read(nil, left); err != nil {
			return nil, err
		}
	}
	s.to = copied
	end, err := s.read(nil, signature)
	if err != nil {
		return nil, err
	}
	switch d := digest.(type) {
	case hash.Hash:
		l.signed = d.Sum(nil)
	case *bytes.Buffer:
		l.signed = d.Bytes()
	}
	return l, l.readHead(head, tail, end)
}

// head reads the part before the entries, of the remaining size bytes of the signed part. next is the beginning of the
// following part, without a header if there is none, and left is the size of that part, with the rest.
func (s *stream) head(size int64) (head []byte, next element, left int64, err error) {
	left = size
	times := 0
	for left > 0 {
		if next, err = s.begin(); err != nil {
			return nil, next, 0, err
		}
		isTime := next.tag == der.UTCTime || next.tag == der.GeneralizedTime
		if next.total() > left || times == 0 && int64(len(head))+next.total() > maxPart {
			return nil, next, 0, errSyntax
		}
		if times == 2 || times == 1 && !isTime {
			return head, next, left, nil
		}
		if isTime {
			times++
		}
		contents, err := s.read(nil, next.size)
		if err != nil {
			return nil, next, 0, err
		}
		head = append(append(head, next.header...), contents...)
		left -= next.total()
	}
	if times == 0 {
		return nil, next, 0, errSyntax
	}
	return head, element{}, 0, nil
}

// sink returns the writer for the signed part of a list with this head.
func (l *list) sink(head []byte) (io.Writer, error) {
	rest := cryptobyte.String(head)
	var algorithm cryptobyte.String
	if !rest.SkipOptionalASN1(der.INTEGER) || !rest.ReadASN1Element(&algorithm, der.SEQUENCE) {
		return nil, errSyntax
	}
	// Its parser is crypto/x509's, and gets a signature to read, too.
	raw, err := withoutEntries(head, nil, append(bytes.Clone(algorithm), 3, 2, 0, 0))
	if err != nil {
		return nil, errSyntax
	}
	parsed, err := x509.ParseRevocationList(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSyntax, err)
	}
	l.algorithm = parsed.SignatureAlgorithm
	if l.algorithm == x509.PureEd25519 {
		return new(bytes.Buffer), nil
	}
	h, is := hashes[l.algorithm]
	if !is {
		return nil, fmt.Errorf("it is signed by %v, which is not accepted", l.algorithm)
	}
	return h.New(), nil
}

// readEntries reads the entries, of size bytes.
func (l *list) readEntries(s *stream, size int64) error {
	var buffer []byte
	for size > 0 {
		entry, err := s.begin()
		if err != nil {
			return err
		}
		if size -= entry.total(); entry.tag != der.SEQUENCE || size < 0 {
			return errSyntax
		}
		if buffer, err = s.read(buffer, entry.size); err != nil {
			return err
		}
		if l.serials == nil {
			l.serials = make(serials, 0, min(size/entry.total(), s.left/minEntry)+1)
		}
		if err := l.readEntry(buffer); err != nil {
			return err
		}
	}
	return nil
}

// minEntry is the size of the smallest entry.
const minEntry = 20
