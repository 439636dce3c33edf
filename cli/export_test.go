// SPDX-License-Identifier: Apache-2.0

package cli

// RunAIP runs `caddy aip args...` in this process, for tests in need of the gateway's modules.
var RunAIP = runAIP
