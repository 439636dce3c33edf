// SPDX-License-Identifier: Apache-2.0

// Package partner is the life-cycle of tasks: it executes the commands of Leaders, runs turns at an agent, ends tasks
// at their deadlines, and resumes turns after a crash. It knows no wire format and no transport. Every task is one
// log of a replay.Store, and the Engine is its only writer.
//
// # Commands and states
//
//   - The 19-row table of AIP v01.00 §4.2 is the only source of moves; statusHistory is always a legal path through
//     it. If an agent skips states, the missing ones are inserted. Times rise strictly within a task, at least 1 ms
//     apart.
//   - A start is pending until a client sees it. It is stored before the agent gets it, without an event. The first
//     event is appended when the agent has reported, or when a client must see the task: responseTimeout passes, a
//     get arrives, a stream, or a start with Policy.Begun, has waited 250 ms; or, where such a start is not waited
//     for, its agent was asked 250 ms ago and reports nothing before its answer (Turn.Sent). Until then the agent may
//     still reject the task; later a refusal is a failure. A dialect that has a state for tasks that their agent does
//     not work on yet (Policy.Tentative) is shown a pending start as such. Such a start is durable before its caller
//     is answered. If the agent refuses a pending start by an error, and the dialect of the caller that waits for it
//     has no task then (Policy.Refusable), the start is taken back: its log is dropped, and what Acceptors have
//     stored is undone (partner/refusal.go).
//   - A command that the table ignores is answered with the unchanged Task. So are a repeated start, and a continue
//     whose message id is in messageHistory: their caller has lost the answer. With other content it is refused. Where
//     the gateway itself repeats them, at the next owner of a shard (Request.Waited), they wait on for their turn.
//   - An agent that finishes by itself is awaiting-completion, with its products. The gateway answers complete.
//   - An agent that speaks AIP is not improved for a Leader that does (Policy.Direct, Report.Verbatim): its first
//     answer ends the wait of a start or continue, and its accepted and working are events of their own. A task that it
//     has completed (Report.Closed) is completed.
//   - Tasks belong to the Leader that started them. For other Leaders they do not exist. Ids at the agent are derived
//     from Partner, Leader and taskId, so the tasks of two Leaders with the same taskId differ; and from a secret of
//     the store, so that no Leader can name the task of another one there.
//   - Sessions have derived names at the agent, too, and nothing is kept of them. A name that the agent makes instead
//     (Report.OwnSession) is in the metadata of the task. A later task of the session takes it from there, by the list
//     of the session (partner/ownsession.go), so it lasts as long as they do. Only for a Partner whose agent has made
//     one before, which is stored with the secret, does a start look for it (TestKeptSessionsCostNothing).
//   - eventSeq is the event's number in the log, from 1. It rises by one, except for a gap after a loss of power
//     (replay.Head.Lost). A Leader's message has no number: it is stored in the record of the event that it causes. A
//     get is not stored.
//   - A drain (Process.Drain) refuses starts before anything is stored, in the one place that all dialects and
//     groups come through. It belongs to the process: a reload keeps it, a restart ends it.
//
// # Where AIP leaves a choice
//
//   - Contradictions. The example of AIP §6.1.3(3) shows awaiting-completion→failed, which the table forbids: it
//     can be read, and is never written. cancel in a terminal state answers the unchanged Task; −32002 is for an
//     agent that refuses.
//   - Cancel. An agent that cannot be reached does not keep a Leader from canceling; the status says that the agent
//     could not be informed. One that refuses does (−32002), unless it does not work (awaiting-input,
//     awaiting-completion), or the task has ended by then, through another cancel or by itself: the agent is polled.
//     What the run reports of the end while a cancel waits is kept and appended with the cancel's outcome. The agent
//     that carries the turn out is asked, under whichever mount point or configuration it began. An agent that names
//     its tasks is asked by the name that it gives: a cancel waits 2 s for it, also while the agent is being found
//     (upstream/names.go), and then counts as one whose agent could not be informed. A cancel by the operator
//     (partner.Engine.Cancel) is one without a message of the Leader: the status says who has canceled the task. The
//     operator can also end a task as failed (partner.Engine.Fail), but only from the states from which the table
//     leads there; then the agent is asked to stop, too, and cannot refuse.
//   - History. messageHistory holds the commands that were carried out, and what the agent has said with earlier
//     states (task/said.go), within a bound. An agent's "still working" is an event, not a row.
//   - Products. The same id replaces; text that grows is sent as the piece that was added. A task offers what its
//     last turn offered: a continue from awaiting-completion withdraws the products, and within a turn the agent's
//     full report replaces all products, in its order. A report that lists no products withdraws none, because some
//     agents do not list them. The log keeps earlier products.
//   - Answers. Where a turn settles without a word and without a product, all that the agent has said in it is said
//     again with its last state: callers that do not stream have nothing else. AIP has results in products, and its
//     Leaders read no status for them. So what an agent of another protocol says at last becomes a product where it
//     finishes without one, and is not in the status as well (Policy.AnswerIsProduct). It is an event of its own,
//     before that of the state: all readers of the log see the same. The start decides, and not who reads: an
//     event has one number for all readers.
//   - Ended streams. Re-stream at the end of an ended task: a comment, then close. Expired events: one frame, then
//     close.
//
// # Turns
//
//   - A caller that waits for a turn may leave: the turn belongs to the engine, not to the request.
//   - A turn that is one request is carried out inline at first: in the goroutine that waits for its result
//     (partner.InlineAgent), because another goroutine would cost more than the whole exchange with the agent. It is
//     a run like any other: a cancel, a get, and the end of the engine find it. Only the end that most turns have,
//     one answer that is stored at once, ends there. All else is handed over to the engine as it stands: after 250
//     ms, an answer by a stream, an error, a report that the store refuses. TestInlineIsTheSame and TestRun hold both
//     ways to the same log, answer and requests.
//   - What an agent reports while the store cannot be written is kept, and stored later; callers that wait are
//     answered with the error at once. When the store is reopened (Store.Reopened), turns without a run are resumed,
//     and deadlines are checked.
//   - An agent that calls the gateway is answered when the report of its call is stored (agent.Report.Stored), and
//     that append is durable.
//   - A message that waits to be sent is marked in the log's metadata (Report.Delivery), so that it is sent after a
//     crash even if the agent does not know the task; that of a pending start, which is sent then in any case, only
//     when the engine closes (handOn). The next engine takes the mark away before it sends (takeOn). A message that
//     the agent has acknowledged without acting on it is marked, too, so that it is not sent again.
//   - After a reload a server may still take one request on a connection of before, because Caddy closes such
//     connections in the background. A Partner that was unregistered hands its commands to the one that was
//     registered last under its name, so the configuration that the operator has replaced begins no turn.
//
// # Deadlines and restarts
//
//   - Deadlines are stored with the log (DueAt), so they survive a restart, and a task that waits needs no memory. A
//     step of the wall clock, or a suspended machine, is noticed within 15 s. The log of a running turn has the DueAt
//     Recover: these turns are resumed after a crash.
//   - A resumed turn is first looked up at the agent (Resume). A start that no client has seen, or of which the
//     agent has reported nothing (metadata.Unreported), is sent again if the agent does not know it and has not named
//     it, and so is a continue that the agent has not received. Any other task that the agent does not know fails.
//   - Whether a Leader may have one more task is known only when the unfinished tasks of the store are counted. That
//     takes about 0.3 s for a million, so it happens in the background after the store is opened: only starts wait
//     for it, and the turns that are to be resumed.
//   - Tasks are counted by state where a state is stored (partner/statecounts.go), by one atomic each. Tasks of the
//     process before, and tasks whose write failed, count when their logs are read: recovery reads all of them.
//     TestTasksByStateOfAFailingStore holds the counts to the store.
//   - The engine and the store outlive a configuration. Each configuration registers its Partners; the newest one
//     resumes turns that no run works on. A configuration that fails to start is unregistered.
//
// # Locks
//
//   - The lock of a task is held while its log is written, and while Acceptors store what comes with a command, also
//     at other nodes: for as long as the store of a shard has no leader. Who asks from outside about all tasks does
//     not take it (Engine.Unresumable).
//   - Nobody has the locks of two tasks. Under one, the locks of the rooms below are taken, and never one of a room
//     that closes or counts engines. Package lockorder has the order; tests panic where it is another one.
//
// # What stays in memory, and what is trimmed
//
//   - A settled task that is not in use stays in memory, folded (partner.idleTasks), so that get, continue and
//     complete read the head of its log and nothing else. It is used only if the head is still the one at which it
//     was folded, so a write of another engine, or a log that was dropped, is noticed. The bound is in bytes, a
//     sixteenth of the memory limit, for all engines of the process together (Process).
//   - A re-stream of a settled task that is not in memory does not load it (Partner.reStream): its first byte need
//     not wait until a long log is folded. TestReStreamWithoutLoading holds it to the stream of a task that is in
//     memory.
//   - Beyond max_events or max_bytes a snapshot replaces the older half of a log. Streams that have still to read it
//     get up to 250 ms before that, if they do read: an agent can send faster than streams can be sent on. One that
//     has stopped loses its events then, and so it delays the agent only once. Each entry of the index of ended logs
//     has the log's size, so that max_size costs one counter, and one scan of that index after the store is opened.
//
// # Lists
//
// A task is in three lists (partner/lists.go): in that of its Leader and its state, in that of its session with its
// state as the label, and in that of its id, for callers who are not identified. So a page of a Leader's tasks reads
// one key of a list for each task that it may show, for each state that it asks for, and the logs of the tasks that
// it shows (TestListCost). A count of all tasks, which A2A's totalSize is, reads at most 10,000 keys, once for all
// pages. A key is moved when the task changes its state, in the same batch; a head has the lists of its log, without
// what their names have in common with that of the log. Lists of one Leader wait for one another, and none waits for
// those of another Leader (TestListsInTurn).
//
// An operator's list of all tasks is in the order of the logs' names, so that a page continues where the last one
// ended.
package partner
