// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Header is the payload of the first record of a segment.
type Header struct {
	// First is the number of the first segment needed at the beginning of this one. The tables have had those before it
	// since then, and record it.
	First uint64
	End   uint64 // bytes of the records of the segment before; the rest there was cut off by a crash
}

// Version is the version of the format of segments. It comes first in a header.
const Version = 1

// Append appends the payload to b.
func (h *Header) Append(b []byte) []byte {
	b = binary.AppendUvarint(b, Version)
	b = binary.AppendUvarint(b, h.First)
	return binary.AppendUvarint(b, h.End)
}

// Parse reads the first record of a segment.
func (h *Header) Parse(kind byte, payload []byte) error {
	var numbers [3]uint64
	for i := range numbers {
		n, size := binary.Uvarint(payload)
		if size <= 0 || kind != KindStart {
			return errors.New("it does not begin as a file of a journal")
		}
		numbers[i], payload = n, payload[size:]
	}
	if numbers[0] != Version {
		return fmt.Errorf("it has the format %d, but this version knows only %d", numbers[0], Version)
	}
	h.First, h.End = numbers[1], numbers[2]
	return nil
}
