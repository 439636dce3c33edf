// SPDX-License-Identifier: Apache-2.0

// Package natsdriver has the drivers of a cluster over NATS: its registry is a stream, and its network the subjects of
// the connection.
//
// With the prefix aip, the stream aip-nodes has the last record of each node under aip.nodes.<name>. A record is read
// from the leader of the stream, never from a replica, and written records are republished under aip.seen.<name>. If a
// stream is removed while nodes run, they make it again; by its creation time they see the new beginning of revisions.
// Messages between nodes are published under aip.to.<address>.<id of the call>, with the subject of the answer; if no
// process listens, the server reports it at once. All nodes listen to aip.to.all.0 as well.
package natsdriver
