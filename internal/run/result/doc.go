// Package result keeps what calls returned, so that a follow-up command or a
// model can read more of it without running anything again.
//
// Three things to know:
//
//   - [Store] is a folder. Each result is one file in it, or two when it is
//     long; several processes may share it, and it survives a restart.
//   - [Store.Create] gives a [Writer] that streams: beyond [Config].MaxBytes
//     only the end of the output is kept, what lies between is counted, and
//     the text says so where it was left out.
//   - [Store.Read] answers a [Query]: head, tail, a range of lines or of
//     characters, a search. It never gives more than the query's limit and
//     says what it left out.
//
// A handle cannot be guessed, and it is good only for the principal and the
// session that made it: with any other, a result is as absent as one that
// never was. What a result says came from outside: code that shows it passes it
// through package untrusted first.
//
// Layout: one folder for each scope, named by the SHA-256 of tenant, principal
// and session; in it HANDLE, a line of JSON about the result and then its text
// when that is short, and otherwise HANDLE.text with the text. HANDLE.part is a
// result that is still being written, or whose writer died.
package result
