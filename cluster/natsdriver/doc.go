// SPDX-License-Identifier: Apache-2.0

// Package natsdriver has the drivers of a cluster over NATS: its registry is a stream, and its network the subjects of
// the connection.
//
// With the prefix aip, the stream aip-nodes has the last record of each node under aip.nodes.<name>. A record is read
// from the leader of the stream, never from a replica, and what is written is republished under aip.seen.<name>. A
// stream that is removed while nodes run is made again by them; the time when it was made tells them that revisions
// begin anew. Messages between nodes are published under aip.to.<address>.<id of the call>, with the subject of the
// answer; where no process listens, the server says so at once. All nodes listen to aip.to.all.0 as well.
package natsdriver
