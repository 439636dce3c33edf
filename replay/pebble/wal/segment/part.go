// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"encoding/binary"
	"errors"
)

// Part is the payload of a record with a part of a batch. The parts of one batch follow one another in their segment;
// between them lie whole batches, and trailers.
type Part struct {
	Offset uint32 // of its first byte in the batch
	Bytes  []byte
}

// PartHeaderLen is the length of a Part beside its bytes.
const PartHeaderLen = 4

// Append appends the payload to b.
func (p *Part) Append(b []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(b, p.Offset), p.Bytes...)
}

// Parse reads a payload. The bytes of p are those of the payload.
func (p *Part) Parse(payload []byte) error {
	if len(payload) < PartHeaderLen {
		return errors.New("it has a part of a batch that is too short")
	}
	p.Offset, p.Bytes = binary.LittleEndian.Uint32(payload), payload[PartHeaderLen:]
	return nil
}
