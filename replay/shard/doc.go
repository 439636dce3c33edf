// SPDX-License-Identifier: Apache-2.0

// Package shard has what works on the shards owned by this process.
//
// The logs of one Leader at one Partner are in one shard (logname.Shard): its tasks, their outboxes, and its
// memberships of groups. An AID as a Leader is in one shard at all Partners, with its inbox and with AUN's data on its
// tasks. So everything counting towards one limit of a Leader is in one shard, and so are all pins of a log
// (replay.Pin).
//
// A shard has one owner at a time, and the engines of the owner are the only writers of its logs: so each keeps the
// read parts of them in memory. A Set is the shards of this process. An Each is one engine, or one registration of a
// configuration with it, for each of them. Opening the engines of a shard is the recovery after a crash, and closing
// them is the same as the end of the process: turns under way stay in their logs, and the next owner asks the agents
// for them. So a moving shard needs no code of its own. After the loss of its shard an owner is refused each append
// (replay.ErrFenced), as if the store were closed.
//
// Any process takes any call: gateway.Execute hands it to the owner (gateway.Owners). Reads need no owner: streams, and
// the followers of other shards' logs, read Set.Logs, and go on while the shard moves.
//
// Bounds of a process are not multiplied by its shards: the settled tasks in memory and the drain are partner.Process,
// requests to agents and memory are gateway.Process, and the turns, attempts and breakers of webhooks are
// notify.Process. The groups have one engine with a home in each shard, because connections to brokers are shared, and
// an exchange belongs to one Leader of all. Inboxes and the index of AUN are made in the same way.
//
// A store that is not shared, in memory or on one disk, is one shard that is always owned. Finding an engine then costs
// the load of a pointer. A store shared by several processes without shards is not safe: the revisions of logs keep
// records from being lost or stored twice, but each process would resume the turns of the others.
//
// The duties of the driver of shards are in replay.Shards, with one more: an owner acts outside the store, as by a
// message to an agent, only while no other one can have taken its shard over (a lease). The engines append before they
// act, and ask the store right before (replay.HeldBy).
//
// The lock of a shard is held while its engines open, and while they end their work. It comes first of all: nothing an
// engine waits for takes it (package lockorder).
//
// This package knows neither tasks nor the work of the engines, so that the rooms of the engines may use it.
package shard
