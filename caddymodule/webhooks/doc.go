// SPDX-License-Identifier: Apache-2.0

// Package webhooks has the settings of webhooks and of agents' pushes. Config makes the configuration of the engine.
package webhooks
