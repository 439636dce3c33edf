// SPDX-License-Identifier: Apache-2.0

// Package operator answers the operators of a gateway: the admin API, by plain http.Handlers over a node. It knows no
// Caddy. Its host finds the Admin of the store in use, adds the answers about health, and maps errors to its own.
//
//	request ---> Handler ---> route ---> alone      by this gateway, of its node
//	                            |
//	                            +------> several    by all gateways of the store, or by the owner of a shard
//	                                       |
//	                                    question ---> another gateway's Admin, which answers alone
//
// Any of several gateways answers for all. A list has the entries of each, with its name, and says which gateways and
// shards are missing. A change is made by the owner of the shard, or by all, and else fails. The subjects have a file
// each, with what a gateway answers for itself; spread.go and lists.go have what several answer together.
//
// A shard may leave while a list is read: then the rest is read again. Nothing is kept beyond a request.
package operator
