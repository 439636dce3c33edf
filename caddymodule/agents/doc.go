// SPDX-License-Identifier: Apache-2.0

// Package agents has the settings of agents: Read reads them in a Caddyfile, Config.Validate checks them before files
// are read, and Config.Connection makes the configuration of the connection of them.
//
//   - Config is for all agents. AgentAPI and AUN are settings of one dialect each, and refused with another one.
//   - TLS has the certificates of both ends, Caller the caller's name for the agent, and Resend what happens after a
//     broken connection.
//
// The package knows neither the app nor the handler.
package agents
