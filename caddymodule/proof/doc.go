// SPDX-License-Identifier: Apache-2.0

// Package proof has the settings of callers' proofs. Identity says by what callers prove who they are, and which
// dialect accepts which proof. Option reads it in a Caddyfile, and Check finds mistakes before files are read. Of it
// are made the Guard, the schemes in cards, the challenges of refusals, and the Authenticator, which reads the files.
//
// TokenVerification is part of all settings of tokens, of those beside certificates, too.
package proof
