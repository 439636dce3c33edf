// SPDX-License-Identifier: Apache-2.0

// Package partner is the life-cycle of tasks: it executes the commands of Leaders, runs turns at an agent, ends tasks
// at their deadlines, and resumes turns after a crash. It knows no wire format and no transport. Every task is one log
// of a replay.Store, and the Engine is its only writer.
//
// # Commands and states
//
//	start --> pending --> accepted --> working --> awaiting-input, awaiting-completion --> completed
//	             |                     ^  |                      |                     complete, or its deadline
//	             |                     |  +--> failed            |
//	             |                     +------- continue --------+
//	             +--> rejected, or taken back
//
// cancel leads from accepted, working and both awaiting states to canceled; so does the deadline of awaiting-input.
//
//   - The 19-row table of AIP v01.00 §4.2 is the only source of moves; statusHistory is always a legal path through
//     it. If an agent skips states, the missing ones are inserted. Times rise strictly within a task, at least 1 ms
//     apart.
//   - A start is pending until a client sees it. It is stored before the agent gets it, without an event. The first
//     event is appended when the agent has reported, or when a client must see the task: responseTimeout passes, a get
//     arrives, a stream, or a start with Policy.Begun, has waited 250 ms; or, if no caller waits for such a start, its
//     agent was asked 250 ms ago and reports nothing before its answer (Turn.Sent). Until then the agent may still
//     reject the task; later a refusal is a failure. A dialect with a state for tasks not yet in work at their agent
//     (Policy.Tentative) is shown a pending start as such. Such a start is durable before its caller is answered. If
//     the agent refuses a pending start by an error, and the dialect of the waiting caller has no task then
//     (Policy.Refusable), the start is taken back: its log is dropped, and the work of Acceptors is undone
//     (partner/refusal.go).
//   - A command ignored by the table is answered with the unchanged Task. So are a repeated start, and a continue with
//     a message id in messageHistory: their caller has lost the answer. With other content it is refused. If the
//     gateway itself repeats them, at the next owner of a shard (Request.Waited), they wait on for their turn.
//   - The task of an agent finishing by itself is awaiting-completion, with its products. The gateway answers complete.
//   - An agent of AIP is not improved for a Leader of AIP (Policy.Direct, Report.Verbatim): its first answer ends the
//     wait of a start or continue, and its accepted and working are events of their own. A task completed by it
//     (Report.Closed) is completed.
//   - Tasks belong to the Leader at their start. For other Leaders they do not exist. Ids at the agent are derived from
//     Partner, Leader and taskId, so the tasks of two Leaders with the same taskId differ; and from a secret of the
//     store, so no Leader can name the task of another one there.
//   - Sessions have derived names at the agent, too, and nothing is kept of them. A name made by the agent instead
//     (Report.OwnSession) is in the metadata of the task. A later task of the session takes it from there, by the list
//     of the session (partner/ownsession.go), so it lasts as long as they do. A start looks for it only if the
//     Partner's agent has made one before (TestKeptSessionsCostNothing); this fact is stored with the secret.
//   - eventSeq is the event's number in the log, from 1. It rises by one, except for a gap after a loss of power
//     (replay.Head.Lost). A Leader's message has no number: it is stored in the record of the event it causes. A get is
//     not stored.
//   - A drain (Process.Drain) refuses starts before anything is stored, in the one place common to all dialects and
//     groups. It belongs to the process: a reload keeps it, a restart ends it.
//
// # Choices left by AIP
//
//   - Contradictions. The example of AIP §6.1.3(3) shows awaiting-completion→failed, forbidden by the table: it can
//     be read, and is never written. cancel in a terminal state answers the unchanged Task; −32002 is for a refusal
//     by the agent.
//   - Cancel. An unreachable agent does not keep a Leader from canceling; the status then mentions the uninformed
//     agent. A refusing one does (−32002), unless it does not work (awaiting-input, awaiting-completion), or the task
//     has ended by then, through another cancel or by itself: the agent is polled. The run's report of an end while a
//     cancel waits is kept and appended with the cancel's outcome. The request goes to the agent in charge of the turn,
//     under whichever mount point or configuration the turn began. An agent that names its tasks is asked by its own
//     name for the task: a cancel waits 2 s for it, also while the agent is being found (upstream/names.go), and then
//     counts as one with an uninformed agent. A cancel by the operator (partner.Engine.Cancel) is one without a message
//     of the Leader: the status names the operator as the one to cancel. The operator can also end a task as failed
//     (partner.Engine.Fail), but only from states with a row to failed in the table; then the agent is asked to stop,
//     too, and cannot refuse.
//   - History. messageHistory holds the executed commands, and the agent's words with earlier states (task/said.go),
//     within a bound. An agent's "still working" is an event, not a row.
//   - Products. The same id replaces; growing text is sent as the added piece. A task offers the products of its last
//     turn: a continue from awaiting-completion withdraws the products, and within a turn the agent's full report
//     replaces all products, in its order. A report without a list of products withdraws none, because some agents do
//     not list them. The log keeps earlier products. A product of a full report has its last piece (AIP v01.00 §6.2.4)
//     when the task settles, in whatever way: a piece that adds nothing if the product does not change then. In an
//     agent's own pieces, its own marks count.
//   - Answers. If a turn settles without a word and without a product, all words of the agent in it are repeated with
//     its last state: callers without a stream have nothing else. AIP has results in products, and its Leaders read no
//     status for them. So the last words of an agent of another protocol become a product if it finishes without one,
//     and are not in the status as well (Policy.AnswerIsProduct). The product is an event of its own, before the event
//     of the state: all readers of the log see the same. The start decides, not the reader: an event has one number for
//     all readers.
//   - Ended streams. Re-stream at the end of an ended task: a comment, then close. Expired events: one frame, then
//     close.
//
// # Turns
//
//   - A caller waiting for a turn may leave: the turn belongs to the engine, not to the request.
//   - A turn of one request is carried out inline at first: in the goroutine waiting for its result
//     (partner.InlineAgent), because another goroutine would cost more than the whole exchange with the agent. It is a
//     run like any other: a cancel, a get, and the end of the engine find it. Only what most turns end with, one answer
//     stored at once, is done there. All else is handed over to the engine as it stands: after 250 ms, an answer by a
//     stream, an error, a report refused by the store. TestInlineIsTheSame and TestRun hold both ways to the same log,
//     answer and requests.
//   - An agent's reports while the store cannot be written are kept, and stored later; waiting callers are answered
//     with the error at once. When the store is reopened (Store.Reopened), turns without a run are resumed, and
//     deadlines are checked.
//   - An agent calling the gateway is answered when the report of its call is stored (agent.Report.Stored), by a
//     durable append.
//   - A message waiting to be sent is marked in the log's metadata (Report.Delivery): it is sent after a crash even if
//     the agent does not know the task. The message of a pending start is sent then in any case, so it is marked only
//     when the engine closes (handOn). The next engine takes the mark away before it sends (takeOn). A message
//     acknowledged by the agent, but not yet acted on, is marked, too, and not sent again.
//   - After a reload a server may still take one request on a connection of before, because Caddy closes such
//     connections in the background. An unregistered Partner hands its commands to the one registered last under its
//     name, so a replaced configuration begins no turn.
//
// # Deadlines and restarts
//
//   - Deadlines are stored with the log (DueAt), so they survive a restart, and a waiting task needs no memory. A step
//     of the wall clock, or a suspended machine, is noticed within 15 s. The log of a running turn has the DueAt
//     Recover: these turns are resumed after a crash.
//   - A resumed turn is first looked up at the agent (Resume). A start seen by no client, or without a report of the
//     agent (metadata.Unreported), is sent again if the agent does not know it and has not named it. So is a continue
//     the agent has not received. Any other task unknown to the agent fails.
//   - Whether a Leader may have one more task is known only when the unfinished tasks of the store are counted. The
//     count takes about 0.3 s for a million, so it happens in the background after the store is opened: only starts
//     wait for it, and the turns to be resumed.
//   - Tasks are counted by state when a state is stored (partner/statecounts.go), by one atomic each. Tasks of the
//     process before, and tasks with a failed write, count when their logs are read: recovery reads all of them.
//     TestTasksByStateOfAFailingStore holds the counts to the store.
//   - The engine and the store outlive a configuration. Each configuration registers its Partners; the newest one
//     resumes turns without a run. A configuration failing to start is unregistered.
//
// # Locks
//
//   - The lock of a task is held while its log is written, and while Acceptors store the Extras of a command, also at
//     other nodes: for as long as the store of a shard has no leader. Questions from outside about all tasks do not
//     take it (Engine.Unresumable).
//   - No goroutine has the locks of two tasks. Under one, the locks of the rooms below are taken, and never one of a
//     room that closes or counts engines. Package lockorder has the order; tests panic at any other one.
//
// # Memory and trimming
//
//   - A settled task out of use stays in memory, folded (partner.idleTasks): get, continue and complete read the head
//     of its log and nothing else. It is used only if the head is still the one of its folding, so a write of another
//     engine, or a dropped log, is noticed. The bound is in bytes, a sixteenth of the memory limit, for all engines of
//     the process together (Process).
//   - A re-stream of a settled task outside of memory does not load it (Partner.reStream): its first byte need not wait
//     until a long log is folded. TestReStreamWithoutLoading holds it to the stream of a task in memory.
//   - Beyond max_events or max_bytes a snapshot replaces the older half of a log. Streams still to read it get up to
//     250 ms before, if they do read: an agent can send faster than streams can be sent on. A stopped stream loses its
//     events then, and so it delays the agent only once. Each entry of the index of ended logs has the log's size. So
//     max_size costs one counter, and one scan of this index after the store is opened.
//
// # Lists
//
// A task is in four lists (partner/lists.go): in the list of its Leader and its state, in the list of its session with
// its state as the label, in the list of its id, for callers without an identity, and in the operators' list of its
// state. So a page of a Leader's tasks reads one key of a list for each task it may show, for each selected state, and
// the logs of the shown tasks (TestListCost). A count of all tasks (A2A's totalSize) reads at most 10,000 keys, once
// for all pages. A key is moved when the task changes its state, in the same batch; a head has the lists of its log,
// without the part of their names in common with the name of the log. Lists of one Leader wait for one another, and
// none waits for another Leader's (TestListsInTurn).
//
// An operator's list of all tasks is in the order of the last changes, or of the logs' names (TaskFilter.ByName): a
// page continues at the end of the last one.
package partner
