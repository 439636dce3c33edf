// SPDX-License-Identifier: Apache-2.0

package replay

import "encoding/binary"

// NewPackedMemory is NewMemory for a store that packs all logs but the one set last.
func NewPackedMemory(s Settings) *Memory {
	var all []*memoryLog
	return &Memory{index: NewIndex(s, 1, Packing[*memoryLog]{
		Append: func(b []byte, l *memoryLog) []byte {
			all = append(all, l)
			return binary.AppendUvarint(b, uint64(len(all)-1))
		},
		Parse: func(p *Numbers) *memoryLog { return all[p.Next()] },
	})}
}
