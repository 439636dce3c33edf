// SPDX-License-Identifier: Apache-2.0

// Package discovery finds the dialect of an agent and its URL, and keeps its card. It asks over HTTP, and hands the
// result to the driver of turns as a Resolver.
//
// An agent's card is fetched once for all waiting callers, and no lock is held meanwhile. An old card is served while a
// new one is fetched. A turn waits at most 500 ms for the first card, to see whether the agent has streams, and whether
// it pushes. An agent without a card is asked for it no more often than one with a card.
//
// The version of an a2a agent is found when it is first needed (discovery.Resolver): by the card, then by requests
// changing nothing. On an unknown method another version is tried, once: such an answer is the proof of nothing run.
package discovery
