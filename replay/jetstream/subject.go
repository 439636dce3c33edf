// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// The subjects of a shard begin with <prefix>.<shard>. and go on with
//
//	owner        the owner's record
//	batch        the end of the last batch, for gateways with protocol 1
//	fence        the only message of an otherwise empty batch
//	mark         the greatest sequence of an empty head that may have been purged
//	<log>.h      the head of a log, and its last records
//	<log>.s      its snapshot
//	<log>.r.<n>  its records from number n on
//
// <log> is the log's name in base64. A value of more than one part has the others at the same subject with .1, .2 and
// so on behind it.

// stream returns the name of the stream of a shard.
func (c Config) stream(shard int) string { return fmt.Sprintf("%s-%d", c.Prefix, shard) }

// subjects returns the common prefix of the subjects of a shard.
func (c Config) subjects(shard int) string { return fmt.Sprintf("%s.%d.", c.Prefix, shard) }

// live returns the common prefix of the subjects of a shard's republished messages.
func (c Config) live(shard int) string { return fmt.Sprintf("%s-live.%d.", c.Prefix, shard) }

// token returns the name of a log as one token of a subject.
func token(log string) string { return base64.RawURLEncoding.EncodeToString([]byte(log)) }

func (st *stream) headSubject(log string) string     { return st.prefix + token(log) + ".h" }
func (st *stream) snapshotSubject(log string) string { return st.prefix + token(log) + ".s" }
func (st *stream) recordSubject(log string, n uint64) string {
	return st.prefix + token(log) + ".r." + strconv.FormatUint(n, 10)
}

// logOf returns the log of a subject that begins with prefix, and the part after the log.
func logOf(prefix, subject string) (log, rest string, err error) {
	of, rest, ok := strings.Cut(strings.TrimPrefix(subject, prefix), ".")
	if !ok {
		return "", "", fmt.Errorf("the subject %q: %w", subject, errDamaged)
	}
	name, err := base64.RawURLEncoding.DecodeString(of)
	if err != nil {
		return "", "", fmt.Errorf("the subject %q: %w", subject, errDamaged)
	}
	return string(name), rest, nil
}

// numberOf returns the number of the first record of a message, by the end of its subject.
func numberOf(subject string) (uint64, error) {
	n, err := strconv.ParseUint(subject[strings.LastIndexByte(subject, '.')+1:], 10, 64)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("the subject %q: %w", subject, errDamaged)
	}
	return n, nil
}
