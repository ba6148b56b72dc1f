// Package secret looks up the values of secrets by name, and keeps them hidden.
//
// Three things to know:
//
//   - A [Value] hides itself: printed, logged or marshalled in any way it is
//     "[secret]". Only [Value.Reveal] gives it out, so every use can be found
//     by that word. It belongs into a header or an environment, never into an
//     argument list.
//   - [Store] looks a name up in the environment and then in a file encrypted
//     with age. [Store.Resolve] reads a reference, "env:NAME", "file:PATH" or
//     "secret:NAME", and [Store.Expand] a text with "${secret:NAME}" in it.
//   - Every value that passed through a Store, or that it holds, is known to
//     [Store.Values], so that the redactor can find it in whatever is written.
//
// The file is an ordinary age file to one X25519 key, holding JSON; the key is
// beside it, in a file of its own that is made with the first secret. So the
// encryption guards copies and backups of the one file, not a machine whose
// user was taken over. By hand: age -d -i secrets.key secrets.age.
package secret
