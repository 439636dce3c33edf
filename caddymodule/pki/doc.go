// SPDX-License-Identifier: Apache-2.0

// Package pki has the certificates and keys of sites, Partners and callers: it obtains, renews and shows those of the
// gateway, and finds out whether those of others count.
//
//   - Certificates obtains those of Partners from an authority of ACPs. Sites show them by get_certificate aip, and
//     Challenge proves to the authority that an agent of ACPs v01.00 is here.
//   - OwnIssuer signs tokens about callers, and JWKS publishes its keys.
//   - Revocation has sources about revoked certificates: those of the app, or of some roots. RevocationVerifier refuses
//     handshakes by them, RootPool those below a root that was taken out of its file. All that is refused is counted.
//   - Validities say until when certificates are valid, for the metrics and the log.
//   - A Host is what the modules find in the app in whose configuration they stand, a Process what all configurations
//     share. The node's Trust judges callers after their handshakes; Host has it ask the right sources.
package pki
