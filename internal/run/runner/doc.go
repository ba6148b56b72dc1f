// Package runner is the only place where calls become effects.
//
// A [Runner] is a [capability.Invoker]. Each call passes eight stages, always
// in this order; the first two also see its result:
//
//	record    every call gets a closing record, refused ones too
//	plugins   may refuse a call or change its arguments, and reduce its result
//	resolve   the capability, its executor; a hidden one does not exist
//	validate  the arguments against the capability's schema
//	decide    the rules, on what the executor says the arguments come to
//	consent   a person's answer where the rules ask for one; no answer is waited
//	          for, or asked about what must fail ([Checker])
//	limit     a bounded queue, fair between principals, sessions and extensions
//	execute   the effect, within its time
//
// The durable record of what is about to happen is written between consent and
// limit. A call runs only if that was possible, and the call that runs is the
// one that was decided on.
//
// Every call gets exactly one [capability.Result]. A refusal is a result that a
// model can read, together with a *[capability.Error]; where a person must
// answer first, a *[Question] is in that error's tree.
//
// A call with a key (see [Config]) that may change something has its effect
// once: made again, it gives the result that is kept. A call whose process
// died while it ran is unknown. It runs again only if the capability is
// declared idempotent by a trusted source, or a person says so through
// [AnswerAgain].
package runner
