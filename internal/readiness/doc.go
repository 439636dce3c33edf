// SPDX-License-Identifier: Apache-2.0

// Package readiness asks the system what descriptors are ready for, without a wait.
package readiness
