// SPDX-License-Identifier: Apache-2.0

package replay

import "encoding/binary"

// Numbers reads stored data of a driver, until it has failed once: then it reads zeros. It is for drivers.
type Numbers struct {
	Rest   []byte // the part not read yet
	Failed bool
}

// Next reads a number written by binary.AppendUvarint.
func (p *Numbers) Next() uint64 {
	n, size := binary.Uvarint(p.Rest)
	if size <= 0 {
		p.Failed = true
		return 0
	}
	p.Rest = p.Rest[size:]
	return n
}

// Bytes reads a number, and as many bytes. They are a part of the data read.
func (p *Numbers) Bytes() []byte {
	n := p.Next()
	if n > uint64(len(p.Rest)) {
		p.Failed = true
		return nil
	}
	b := p.Rest[:n:n]
	p.Rest = p.Rest[n:]
	return b
}

// AppendText appends the length of a text to b, and the text, as Bytes reads them.
func AppendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// Gaps reads the output of AppendGaps.
func (p *Numbers) Gaps() (gaps []Gap) {
	for n := p.Next(); n > 0 && !p.Failed; n-- {
		gaps = append(gaps, Gap{From: p.Next(), To: p.Next()})
	}
	return gaps
}

// AppendGaps appends the number of the gaps of a log to b, and the gaps.
func AppendGaps(b []byte, gaps []Gap) []byte {
	b = binary.AppendUvarint(b, uint64(len(gaps)))
	for _, g := range gaps {
		b = binary.AppendUvarint(b, g.From)
		b = binary.AppendUvarint(b, g.To)
	}
	return b
}
