// SPDX-License-Identifier: Apache-2.0

// Package translate defines a dialect: one protocol at one version, as pure functions between its bytes and the canon
// of package task. There is one folder for each protocol, and no protocol imports another, so N dialects are at most 2N
// codecs: a Server towards callers and a Client towards agents. Codecs do no I/O, read no clock and start no goroutine.
// All of them may be used by any number of goroutines at once.
//
// A request of a caller, and the answer of an agent:
//
//	           Server                  gateway                 Client
//	       +------------+   Call   +-------------+   Turn   +------------+
//	caller | Decode     | -------> | the task    | -------> | AppendTurn | agent
//	------>|            |          | in the      |          |            |------>
//	<------| AppendTask | <------- | canon, and  | <------- | Reply      |<------
//	       | Encoder    |   Task,  | its log     |  Report  | Stream     |
//	       +------------+   Event  +-------------+          +------------+
//
// The abilities of some dialects only are optional interfaces, facets. The facets of a Server are
//
//   - Lister: lists of tasks
//   - CardServer: an extended card
//   - GroupServer: groups at a message broker
//   - StateFilter: states hidden from webhooks
//   - ContentTyper: another media type than application/json
//   - ContentChecker: bodies of some media types only
//   - Statuser: statuses of HTTP for errors
//   - ErrorStreamer: errors as the only event of a stream
//   - Transcoder: messages that are not JSON
//   - Unresumer: streams not resumed by callers
//   - Marked: bodies with a byte order mark at their beginning
//   - Sessions: parts of sessions
//   - VersionedServer: another form for callers naming their version
//
// and those of its Encoder are
//
//   - RecordEncoder: events written from their stored form
//   - Keeper: events kept in memory
//
// The facets of a Client, held in Facets, are
//
//   - Getter, Canceler, SessionCanceler, Resubscriber, Completer, Registrar, Describer: requests beside those of a turn
//   - Binder, Mounted: the places of requests
//   - StatusReader: messages other than JSON, and errors beside them
//   - Locator: the search for a task after its name was lost
//   - Namer, Renamer, Unstreamer, Forgetter, Streamer, Repeater, LateActor, Restater, Resender: the behaviour of its
//     agents
//
// # Common rules of dialects
//
//   - The dialects of callers are asked in a fixed order whether they have the path, and, if several do, whether they
//     match the request: by its method, by its shape (AIP 2), by A2A-Version, and, for the methods of both A2A 0.1 and
//     0.3, by whether the gateway made the task's id.
//   - Callers naming no tasks get ids made by the gateway. Callers not naming themselves are the peer of their
//     connection; with identity off, all of them are one.
//   - A task finished by its agent is awaiting-completion in the log. For callers without such a state, completion auto
//     completes it in the same write (A2A 0.3, 1.0), or shows it as completed and leaves it open, because such callers
//     continue a finished task by its id (A2A 0.1); confirm shows it as input-required.
//   - auth-required awaits input, but the agent may resume by itself (Report.SelfResuming): the run continues, and the
//     caller is answered. A data item of the status says so; A2A from 0.3 on shows it as the state (status.AwaitsAuth).
//   - A member unknown to every version is kept beside the canon (Extensions), unless its name is a known one but for
//     case: it is neither read as the known one nor passed on. Histories show callers' messages without such members.
package translate
