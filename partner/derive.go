// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"github.com/aip-gateway/aip-gateway/internal/logname"
)

// derive returns a name that is always the same for the same parts, and from which they cannot be read.
func derive(kind string, parts ...string) string {
	sum := sha256.Sum256([]byte(kind + logname.Separator + strings.Join(parts, logname.Separator)))
	return kind + "-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:15]))
}
