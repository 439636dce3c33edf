// SPDX-License-Identifier: Apache-2.0

// Package aac checks the access token that comes with a call beside the certificate of its caller, as Agent Access
// Control (AAC v02.02) has it: a token of delegation, which says on whose behalf the caller acts. A call of an
// agent on its own behalf needs none (§9.2), unless the operator requires one.
//
// The order is that of §11.3. Before, the front and the guard have verified the certificate and the senderId. A
// Gate then verifies the token itself (package token: signature, issuer, audience, times), what it must say
// (§10.2), that it is for this Partner, that its actor is the caller (act), that it is bound to no other
// certificate (cnf), that the caller stands where the chain of delegation allows it, and at last that it was not
// used before. The policy decides after that, with the claims of the token.
//
// A token is used up by its last check, so a call that the policy denies has used it, and a token that is refused
// for another reason has not. Used tokens are in the store until they have expired, with a margin for clocks that
// are set back: so they are known after a restart, and to every process that shares the store.
//
// The gateway answers a refused caller with one of three fixed sentences, for the errors −32008, −32010 and
// −32009 of §12. The reason is in the cause of the error, for the log. Neither errors nor logs hold a token; the
// subject, who may be a person, is hashed.
//
// Messages in groups carry no token (§11.2): none is stored with a task, and none is sent on.
package aac
