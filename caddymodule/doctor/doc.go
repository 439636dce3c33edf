// SPDX-License-Identifier: Apache-2.0

// Package doctor finds out what is wrong with a set-up, and says in a sentence what to change.
//
//	the file ─▶ Caddy's JSON ─▶ certificates, sites, paths          mount.go, site.go, certificate.go
//	             │
//	             ├─▶ the app aip, decoded ─▶ Setup ─▶ findings      setup.go, examine.go
//	             │
//	             └─▶ Caddy, provisioned ─▶ Servers ─▶ consoles      openconsole.go, consoleway.go
//
// The host makes a Setup of its settings and does not judge them: doctor knows the host by the interfaces Examiner,
// ConsoleHandler and PartnerHandler alone. Nothing is started, and nothing is changed, but for the work of an agent
// on trial.
//
// A configuration that is loaded is judged by the same code: the host refuses a console that others than operators can
// open (Servers.Consoles), and warns of handlers that get no request (Place.Hides), of paths that nothing answers
// (Answers) and of tasks that are shared (SharedTasks). A part of Caddy's routes that doctor does not understand counts
// as open to everyone.
package doctor
