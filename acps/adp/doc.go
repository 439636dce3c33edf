// SPDX-License-Identifier: Apache-2.0

// Package adp answers queries of ADP, the Agent Discovery Protocol of ACPs (v02.02, and v01.00), about the agents of a
// catalogue, and asks discovery servers whether they know agents. It knows no transport of callers: who calls, and
// which agents it may call, is for the host to say.
//
// The specification is followed where the reference differs: an unknown field or operator of a filter is an error, and
// or, not and groups count; the reference ignores them in silence, and so answers what was not asked for. There are no
// pages. What is not known here is not asked of others: a caller is sent to another server, or finds nothing.
//
// # Filters
//
// A condition on a field in a list holds if it holds for one element. What is not there equals nothing: it fails all
// operators but the negative ones (ne, nin, notContains, noneOf, hasNoKey), and exists with false.
//
// # Order
//
// A document is a skill, with the words of its agent. Queries are ranked by BM25: rare words count more than frequent
// ones, and words of names and tags twice. Text is split into words, and text without spaces between words (Chinese,
// Japanese) into each two characters that are neighbours. The order of equals is that of AICs, so an answer is the same
// each time.
package adp
