// SPDX-License-Identifier: Apache-2.0

// Package bounds has the settings that bound callers and tasks: Limits of size, number and memory, and Timeouts for
// Leaders that set none.
package bounds
