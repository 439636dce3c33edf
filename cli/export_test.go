// SPDX-License-Identifier: Apache-2.0

package cli

// RunAIP runs `caddy aip args...` in this process, for tests that need the modules of the gateway.
var RunAIP = runAIP
