// SPDX-License-Identifier: Apache-2.0

// Package upstream carries turns out: it sends a turn's message to the agent, sends it again if the agent has not
// received it, follows the answer, and resumes, polls or cancels the turn. It knows the failures of agents. The meaning
// of messages is the codec's business, and their way to the agent is the business of a Transport: the package imports
// none.
//
// # A turn
//
// Agent.Run is one loop, run.carryOut: it makes an attempt, and after an error, if the agent demonstrably does not work
// on the turn, the policy retry decides about the next attempt. retry.busy waits for an agent refusing requests for
// now; retry.undelivered sends a message again that the agent has not received: nothing was sent, or the agent says so
// when asked. Once the agent has reported anything, the message is not sent again. An attempt sends the message by the
// first route accepted by the agent (send), reads the answer (receive a stream, reply one message), and polls (poll) if
// the answer does not end the turn. Agent.Resume continues the turn of a lost connection or process (resume): it polls,
// and uses a new stream only as a sign of when to poll, and of life (watch). Silence is no loss: an agent at work, by
// its own word, has IdleTimeout, unless its answers stopped and came back (signs).
//
//	Run:    carryOut --> attempt --> send --> receive or reply --> the end of the turn
//	           ^            |                        |                      ^
//	           +-- retry <--+ not received           | no end, or cut       |
//	                                                 v                      |
//	Resume: carryOn --> resume ----------------->  poll --------------------+
//	                                                 ^
//	                                                 | an event
//	                                               watch
//
// A settled state in a stream of A2A is held back (upstream/hold.go) until the stream ends, or is silent for a time:
// all events before then are a part of the turn. The codec gives this time, and says whether the state is one on the
// way (agent.Following). The stream behind a question not called final by the agent is never closed while the turn
// lasts: the Leader is asked after a time, and the run reads on. If an agent of A2A v0.1 ends its stream without a
// settled state, and then does not tell the state of the task, the content of the stream is the result
// (upstream/ended.go). A broken connection is no such end.
//
// The driver makes up for the gaps of a dialect. No streams: the task is polled. No get: only the answer to the
// message, a new stream, and messages arriving unasked are known; without any of them, a lost connection is a failed
// turn. No cancel: the connection is closed, and the task is canceled; its status warns: the agent may continue. A
// cancel of everything in a session (translate.SessionCanceler) is sent only while the agent works on the task. An
// agent with one run for each session answers others as busy (translate.ErrBusy): they have not begun, so they are sent
// again (retry.busySession). Any request may be answered by a stream. It is read to its end.
//
// Agent.Try (upstream/try.go) carries out a turn not begun by any caller, and reports the agent's acts.
//
// # Acts never done twice
//
//   - An AIP Partner may act on a continue long before its task shows it, and ignores message ids
//     (translate.LateActor). So a continue that it may have is sent again only if it is not among the messages that the
//     Partner keeps of the task: a Leader can repeat a message, but cannot undo work done twice.
//   - An answer to a message is its answer, also under the agent's own name for the task (run.renamed). After it
//     nothing is sent again, even if the agent forgets the task. An agent with its own names for tasks may answer a
//     continue by another task of the same session (wire.GoesOn). The answer to another request is no reason to repeat
//     the message either: the agent has taken it.
//   - An agent may have read a message all the same, although it does not know it after a broken connection. So it is
//     asked for ResendAfter before a message is sent again (upstream/receipt.go), whether the connection broke or the
//     process.
//   - Some agents store a task at its end, or never (translate.Forgetter): not knowing it proves nothing. So it counts
//     only of an agent seen to know a task while it works on it, and once (upstream/resend.go). This is noted whenever
//     an agent is asked for a task, and stored with each turn.
//
// # The number of requests to an agent
//
// The number of requests to an agent is bounded (upstream.Slots). Requests with an answer due soon have their own
// slots. If requests wait, the Leaders take turns, and those of one Leader keep their order: a key with many requests
// delays a request of another key by no more than one. The bound of the queue is shared in the same way, without a
// number for each Leader: one may have as many turns waiting as there is room left. When the room is used up, a turn is
// refused before anything is stored (partner.Admitter).
//
// # The stream of an agent
//
// Most events of a stream are a piece of a text. Four fast paths serve them, each in one place. The test named last
// holds each to the general path beside it.
//
//   - sseproxy.Reader.find: an event of one line of data is given at its place in the buffer. All others are read line
//     by line. FuzzReader
//   - translate.TextStream: a piece of text is read in one strict pass (wire.Piece), in the form named by its dialect
//     (wire.Form), or only its text if the event is like the one before (wire.LastPiece), and written into task.Pieces
//     as it is stored and sent to AIP callers. Stream.Event reads all unusual events, and the first piece of each
//     product. translatetest.SameTexts, by a fuzz target for each version
//   - task.Pieces: the pieces of one read of the stream are one report (run.read), and so one lock, one append and one
//     wake-up (activeTask.addPieces). The log is the same as from each event alone, for all reads and limits.
//     upstream.TestReadsDoNotMatter, partner.TestPiecesAreChunks
//   - task.Fold.ApplyPieces: a text grows beside its product, and is joined with it when the task is read (Fold.Task).
//     Sizes are counted without joining. task.TestFoldOfPieces
package upstream
