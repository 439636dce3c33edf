// SPDX-License-Identifier: Apache-2.0

package replay

// NewPackedMemory is NewMemory for a store that packs the heads of all logs but the one set last.
func NewPackedMemory(s Settings) *Memory { return &Memory{index: NewIndex[memoryRecords](s, 1)} }
