// SPDX-License-Identifier: Apache-2.0

// Package upstream carries turns out: it sends a turn's message to the agent, retries what the agent has not received,
// follows its answer, and resumes, polls or cancels it. It knows how agents fail. What the messages mean is the codec's
// business, and how they get to the agent that of a Transport: the package imports none.
//
// # A turn
//
// Agent.Run is one loop, run.carryOut: it makes an attempt, and after an error which proves that the agent does not
// work on the turn, the policy retry decides about the next attempt. retry.busy waits for an agent that takes no
// requests; retry.undelivered sends again what the agent has not received: nothing was sent, or the agent says so when
// it is asked. Once the agent has reported anything, the message is not sent again. An attempt sends the message by the
// first route that the agent takes (send), reads the answer (receive a stream, reply one message), and polls (poll) if
// that does not end the turn. Agent.Resume continues the turn of a connection or process that is gone (resume): it
// polls, and uses a new stream only as a sign of when to poll, and of life (watch). Silence is no loss: an agent that
// says that it works has IdleTimeout, unless its answers stopped and came back (signs).
//
// A settled state in a stream of A2A is held back (upstream/hold.go) until the stream ends, or is silent for a time:
// what comes before that is a part of the turn. The codec says how long that is, and whether the state is one on the
// way (agent.Following). The stream behind a question that the agent does not call final is never closed while the turn
// lasts: the Leader is asked after a time, and the run reads on. If an agent of A2A v0.1 ends its stream without a
// settled state, and then does not say how the task stands, what the stream has brought is the result
// (upstream/ended.go). A connection that breaks is no such end.
//
// What a dialect lacks, the driver replaces. No streams: the task is polled. No get: only the answer to the message, a
// new stream, and what arrives unasked are known; without any of them, a lost connection is a failed turn. No cancel:
// the connection is closed, and the task is canceled; its status says that the agent may continue. A cancel that stops
// whatever a session does (translate.SessionCanceler) is sent only while the agent works on the task. An agent that has
// one run for each session answers others as busy (translate.ErrBusy): they have not begun, so they are sent again
// (retry.busySession). Any request may be answered by a stream, which is read to its end.
//
// Agent.Try (upstream/try.go) carries out a turn that no caller has begun, and tells what the agent does.
//
// # What is not done twice
//
//   - An AIP Partner may act on a continue long before its task shows it, and ignores message ids
//     (translate.LateActor). So a continue that it may have is sent again only if the messages that it keeps of the
//     task do not have it: a Leader can repeat a message, but cannot undo work that is done twice.
//   - An answer to a message is its answer, also under a name that the agent has made for the task (run.renamed). After
//     that nothing is sent again, even if the agent forgets the task. An agent that names its tasks may answer a
//     continue by another task of the same session (wire.GoesOn). The answer to another request is no reason to repeat
//     the message either: the agent has taken it.
//   - What an agent does not know after a broken connection it may have read all the same. So it is asked for
//     ResendAfter before a message is sent again (upstream/receipt.go), whether the connection broke or the process.
//   - Some agents store a task at its end, or never (translate.Forgetter): that they do not know it proves nothing. So
//     it counts only of an agent that has been seen to know a task while it works on it, and once (upstream/resend.go).
//     That is noted whenever an agent is asked for a task, and stored with each turn.
//
// # How many requests an agent has
//
// The number of requests to an agent is bounded (upstream.Slots). Requests that are answered soon have their own slots.
// Where requests wait, the Leaders take turns, and those of one Leader keep their order: a key that has many requests
// delays one of another key by no more than one. The bound of the queue is shared in the same way, without a number for
// each Leader: one may have as many turns waiting as there is room left. When that is used up, a turn is refused before
// anything is stored (partner.Admitter).
//
// # The stream of an agent
//
// Most events of a stream are a piece of a text. Four fast paths serve them, each in one place. The test that is named
// last holds each to the general path beside it.
//
//   - sseproxy.Reader.find: an event that is one line of data is given where it lies in the buffer. All others are read
//     line by line. FuzzReader
//   - translate.TextStream: a piece of text is read in one strict pass (wire.Piece), in the form that its dialect names
//     (wire.Form), or only its text where the event is like the one before (wire.LastPiece), and written into
//     task.Pieces as it is stored and sent to AIP callers. What is unusual, and the first piece of each product, is
//     read by Stream.Event. translatetest.SameTexts, by a fuzz target for each version
//   - task.Pieces: what one read of the stream has brought is one report (run.read), and so one lock, one append and
//     one wake-up (activeTask.addPieces). The log is the one that each event alone would make, whatever the reads and
//     the limits are. upstream.TestReadsDoNotMatter, partner.TestPiecesAreChunks
//   - task.Fold.ApplyPieces: a text grows beside its product, and is joined with it when the task is read (Fold.Task).
//     Sizes are counted without that. task.TestFoldOfPieces
package upstream
