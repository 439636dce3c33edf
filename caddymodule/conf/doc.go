// SPDX-License-Identifier: Apache-2.0

// Package conf reads and checks settings, and says what is wrong with them.
//
//   - A Parser reads the options of a directive, as a grammar of functions. Its errors name the option, and its line.
//   - A Grammar has every block of the program. An option in the wrong block is an error that names the
//     right one.
//   - Replace and Literal are for settings that take Caddy's placeholders, and for those that do not. No error quotes
//     what stands beside a placeholder, since it may be part of a secret.
//
// It knows no directive and no option by name, but for those of Caddy's that are looked for in ours.
package conf
