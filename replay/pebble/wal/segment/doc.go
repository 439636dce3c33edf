// SPDX-License-Identifier: Apache-2.0

// Package segment is the format of the files of a journal: records, the first being a header, and the last of each
// write a trailer. It writes and reads bytes, and decides nothing; package wal does.
package segment
