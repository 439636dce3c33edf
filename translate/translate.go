// SPDX-License-Identifier: Apache-2.0

// Package translate says what a dialect is: one protocol at one version, as pure functions between its bytes and the
// canon of package task. There is one folder for each protocol, and no protocol imports another, so N dialects are at
// most 2N codecs: a Server towards callers and a Client towards agents. Codecs do no I/O, read no clock and start no
// goroutine. All of them may be used by any number of goroutines at once.
//
// What only some dialects have is an optional interface, a facet. The facets of a Server are
//
//   - Lister: lists of tasks
//   - CardServer: an extended card
//   - GroupServer: groups at a message broker
//   - StateFilter: states that webhooks are not notified of
//   - ContentTyper: another media type than application/json
//   - ContentChecker: bodies of some media types only
//   - Statuser: statuses of HTTP for errors
//   - ErrorStreamer: errors as the only event of a stream
//   - Transcoder: messages that are not JSON
//   - Unresumer: streams that cannot be resumed
//   - Sessions: parts of sessions
//
// and those of its Encoder are
//
//   - RecordEncoder: events written from their stored form
//   - Keeper: events that are kept in memory
//
// The facets of a Client, which Facets holds, are
//
//   - Getter, Canceler, SessionCanceler, Resubscriber, Completer, Registrar, Describer: requests beside those of a turn
//   - Binder, Mounted: where requests are sent
//   - StatusReader: messages that are not JSON, and errors beside them
//   - Locator: how a task is found whose name was lost
//   - Namer, Streamer, Repeater, LateActor, Restater, Resender: how its agents behave
package translate

// Field is a header field.
type Field struct{ Name, Value string }
