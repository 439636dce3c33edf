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
//   - Unresumer: streams that callers do not resume
//   - Marked: bodies that begin with a byte order mark
//   - Sessions: parts of sessions
//   - VersionedServer: another form for callers that name their version
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
//   - Namer, Renamer, Unstreamer, Forgetter, Streamer, Repeater, LateActor, Restater, Resender: how its agents behave
//
// # What dialects have in common
//
//   - The dialects of callers are asked in a fixed order whether they have the path, and, if several do, whether they
//     match the request: by its method, by its shape (AIP 2), by A2A-Version, and where A2A 0.1 and 0.3 share a method,
//     by whether the gateway made the task's id.
//   - Callers that name no tasks get ids that the gateway makes. Callers that do not name themselves are the peer of
//     their connection; where identity is off, all of them are one.
//   - A task that its agent has finished is awaiting-completion in the log. For callers without such a state,
//     completion auto completes it in the same write (A2A 0.3, 1.0), or shows it as completed and leaves it open,
//     because such callers continue a finished task by its id (A2A 0.1); confirm shows it as input-required.
//   - auth-required awaits input, but the agent may resume by itself (Report.SelfResuming): the run continues, and the
//     caller is answered. A data item of the status says so; A2A from 0.3 on shows it as the state (status.AwaitsAuth).
//   - A member that no version knows is kept beside the canon (Extensions), unless its name is a known one but for
//     case: it is neither read as the known one nor passed on. Histories show callers' messages without such members.
package translate
