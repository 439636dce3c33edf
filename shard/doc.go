// SPDX-License-Identifier: Apache-2.0

// Package shard has what works on the shards that this process owns. The logs of one Leader at one Partner are in one
// shard, and each shard has one owner: the engines of the owner are the only writers of its logs, so each keeps in
// memory what it has read of them.
//
// A Set is the shards of the process. An Each is one engine, or one registration with an engine, for each of them. To
// open the engines of a shard is the recovery after a crash, and to close them is what the end of the process does:
// turns that are under way stay in their logs, for the next owner. So a shard that moves needs no code of its own.
//
// A store that is not shared, in memory or on one disk, is one shard that is always owned. To find an engine then costs
// the load of a pointer. This package knows neither tasks nor what the engines do, so that the rooms of the engines may
// use it.
package shard
