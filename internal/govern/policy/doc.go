// Package policy decides whether a call may happen.
//
// [Compile] makes [Rules] of [Settings]: a profile, tool access, modes,
// intents, permissions, argument rules, thresholds of risk, and the Cedar
// files of an organisation. [Rules.Decide] judges one [Request] and
// [Rules.Visible] judges a capability for a class of principals, before there
// are arguments; both follow the same policies, so a capability that is hidden
// would also be refused. [Describe] prints the rules for people.
//
// Everything that the settings say becomes Cedar policies, which
// [Rules.Cedar] prints. What Cedar cannot express, such as a glob, a prefix of
// a command or a host with a wildcard, is matched here and handed to Cedar as a
// fact. The part of every policy that depends on neither arguments nor risk is
// evaluated by Cedar once for each class of principal and kind of capability
// and kept; a decision then evaluates only what is left.
//
// The order is fixed: exists, enabled, mode and deployment, intent,
// permission, arguments, risk, consent. The first refusal is the one that is
// reported. A refusal beats a question and a question beats a permission. Nil
// rules, unknown words and errors of evaluation refuse.
//
// The package does no I/O and has no clock: the time is part of the request.
package policy
