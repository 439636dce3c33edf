// SPDX-License-Identifier: Apache-2.0

// Package amp writes what Partners report of themselves to a monitor: records of AMP (v02.02 §5), one JSON object in a
// line, in files that a forwarder follows. It receives nothing, and sends nothing itself.
//
// # Files
//
// There is one file for each type of record, amp_<type>_<name>.jsonl, with the records of all Partners. Lines are
// added by a single write each, to a file that is opened for appending, so configurations that overlap in a reload
// share it. A file that has grown too large is renamed to <file>.1, and those before it move on by one: a forwarder
// that has it open reads it to its end, and one that looks for *.jsonl does not find it twice. A file that another
// program has renamed or removed is made again. Nothing is truncated.
//
// # A call never waits
//
// Records wait in a queue with a bound for the one goroutine that writes them. What comes when it is full, and what
// cannot be written, is lost and counted. A line that was written in part, as when the disk is full, is ended by the
// next write: a reader drops that one line.
//
// # Names and signatures
//
// The specification writes the members of a record in camel case, and signs some of them (§5.1.2, integrity). The
// software of ACPs 2.2 has them in snake case, and signs all. Either can be had; the body is the same. A record stands
// in its file in the canonical form of RFC 8785, in which it is signed. A record of audit without a signature is not
// written (§5.6).
package amp
