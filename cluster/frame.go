// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/binary"
	"errors"
)

// kind is the kind of the data of a message: its first byte.
type kind byte

// The kinds. Nodes of two versions speak with each other while the program is replaced, so they do not change.
const (
	callFrame  kind = iota + 1 // asks: shard, service, time limit, size, the first part of the request
	partFrame                  // from the caller: offset, a part of the request
	grantFrame                 // to the caller: number of bytes of the request allowed to be sent
	cancelFrame
	pingFrame    // from the caller
	workingFrame // answers a ping
	unknownFrame // answers a ping, a part or a grant: there is no such call, or not any more
	replyFrame   // to the caller: status, size, the first part of the reply
	restFrame    // to the caller: offset, a part of the reply
	takeFrame    // from the caller: number of bytes of the reply allowed to be sent
	ownerFrame   // to all nodes: the owner of a shard has changed
)

// status is the outcome of a call.
type status byte

// The statuses. The text of an error is in the reply, but for ended.
const (
	ended     status = iota
	notOwner         // the node does not own the shard, and has not begun
	moved            // the node has lost the shard
	busy             // the node has too much to do, and has not begun
	failed           // the service has returned an error
	noService        // the node has no such service
)

// frame is the data of a message. Its kind determines the fields in use.
type frame struct {
	kind    kind
	shard   int // -1 for none
	service string
	limit   uint64 // ms; 0 for none
	size    uint64 // of the whole request or reply
	offset  uint64 // of data; or the number of granted bytes
	status  status
	data    []byte // a view of the message
}

// overhead is more than a frame has beside its data and the name of its service.
const overhead = 64

func (f *frame) append(to []byte) []byte {
	to = append(to, byte(f.kind))
	switch f.kind {
	case callFrame:
		to = binary.AppendUvarint(to, uint64(f.shard+1))
		to = binary.AppendUvarint(to, uint64(len(f.service)))
		to = append(to, f.service...)
		to = binary.AppendUvarint(to, f.limit)
		to = binary.AppendUvarint(to, f.size)
	case replyFrame:
		to = append(to, byte(f.status))
		to = binary.AppendUvarint(to, f.size)
	case partFrame, restFrame, grantFrame, takeFrame:
		to = binary.AppendUvarint(to, f.offset)
	case ownerFrame:
		to = binary.AppendUvarint(to, uint64(f.shard))
	}
	return append(to, f.data...)
}

var errFrame = errors.New("a message of another node cannot be read")

// readFrame reads the data of a message. Its sender may be anything.
func readFrame(data []byte) (f frame, err error) {
	if len(data) == 0 {
		return f, errFrame
	}
	f.kind, data = kind(data[0]), data[1:]
	number := func(most uint64) (n uint64) {
		n, used := binary.Uvarint(data)
		if used <= 0 || n > most {
			err = errFrame
			return 0
		}
		data = data[used:]
		return n
	}
	switch f.kind {
	case callFrame:
		f.shard = int(number(maxShards)) - 1
		n := int(number(maxService))
		if err != nil || n > len(data) {
			return f, errFrame
		}
		f.service, data = string(data[:n]), data[n:]
		f.limit, f.size = number(maxLimit), number(maxBody)
	case replyFrame:
		if len(data) == 0 {
			return f, errFrame
		}
		f.status, data = status(data[0]), data[1:]
		f.size = number(maxBody)
	case partFrame, restFrame, grantFrame, takeFrame:
		f.offset = number(maxBody)
	case ownerFrame:
		f.shard = int(number(maxShards))
	case cancelFrame, pingFrame, workingFrame, unknownFrame:
	default:
		return f, errFrame
	}
	f.data = data
	switch f.kind {
	case callFrame, replyFrame:
		if uint64(len(data)) > f.size {
			err = errFrame
		}
	}
	return f, err
}

// Bounds of frames.
const (
	maxShards  = 1 << 16
	maxService = 64
	maxLimit   = 1 << 40
)
