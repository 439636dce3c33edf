// SPDX-License-Identifier: Apache-2.0

// Package site has the fixtures of the end-to-end tests, which see the gateway from outside: the real binary, real TLS,
// real agents. Each package beside it tests one subject with them, and calls Main from its TestMain.
//
//	Site                gateway of its own, in a directory of its own, by a Config
//	Cluster             gateways over one store on NATS servers
//	AUNSite, AUNBehind  with an AUN side, or in front of an agent of AUN
//	Caller, Follower    Leaders: call by call, and over streams with breaks
//	GroupLeader, Member both sides of a group, over the shared RabbitMQ
//	FakeAgent           agent with answers by the test; PushAgent and RuntimeAgent have their own
//	Sink                receiver of webhooks
//	Wire                connection that breaks
//
// A file or a folder of the project has its path from the folder of a package beside this one, where go test runs it:
// ../../../caddy is the binary under test, unless AIP_CADDY names another, and ../../interop/bin has the agents.
// `make e2e` builds both.
//
// All packages may run at once: ports are of freeport, which gives none twice on a machine, and brokers, servers and
// certificates belong to one process.
package site
