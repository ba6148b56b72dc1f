// Package session keeps what was said, in the store: a [Head] for each session
// and its entries, one after the other. Of sessions at rest a process has the
// 64 that it used last in memory, and at most 16 MB of them; each use looks at
// the head, so that what other processes wrote is seen.
//
// An entry is written once and never changed. A conversation is cut and taken
// back by further entries that hide earlier ones; [Live] gives what is left.
// So nothing that was said is lost before the session is deleted.
//
// One turn at a time writes to a session, over all processes: [Store.Lock]
// gives it as a [Turn], whose lock is kept alive while it is held and expires
// when its process dies. [Store.Prepare] does without the commit that only takes
// the lock, and [Turn.Closing] without the one that only gives it back.
//
// # Keys
//
// An owner is the digest of a tenant and a principal, so the sessions of
// others are not merely refused: they are not there.
//
//	session/OWNER/ID/entry/SEQ     an entry; SEQ has ten digits
//	session/OWNER/ID/entry/SEQ.NN  the rest of a large one
//	session/OWNER/ID/head          the head; its version is that of the session
//	session/OWNER/ID/lock          the turn that runs, with an expiry
//	session-list/OWNER/TIME/ID     the order of the list; TIME counts down
package session
