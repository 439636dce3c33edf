// SPDX-License-Identifier: Apache-2.0

// Package pki has the certificates and keys of sites and Partners: it obtains them, renews them, and shows them.
//
//   - Certificates obtains those of Partners from an authority of ACPs. Sites show them by get_certificate aip, and
//     Challenge proves to the authority that an agent of ACPs v01.00 is here.
//   - OwnIssuer signs tokens about callers, and JWKS publishes its keys.
//   - A Host is what the modules find in the app in whose configuration they stand.
package pki
