// SPDX-License-Identifier: Apache-2.0

// Package checks has the checks of AIP, and the protocols that they are about, as files: aip/*.acts.yaml and
// protocols/*.yaml. FORMAT.md, beside it, says how they are read.
package checks

import "embed"

// Files has the folders aip and protocols.
//
//go:embed aip/*.yaml protocols/*.yaml
var Files embed.FS
