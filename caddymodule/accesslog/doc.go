// SPDX-License-Identifier: Apache-2.0

// Package accesslog shows calls in Caddy's access logs.
//
//   - A Record adds what is known of a call to Caddy's own line about the request, and to the placeholders {aip.*}.
//   - Logs finds the access log of a site, for what Caddy writes no line about, or another one.
package accesslog
