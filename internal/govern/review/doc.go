// Package review keeps extensions switched off until a person has seen what they
// ask for and agreed, and switches them off again when that changes.
//
// A [Manifest] is what one package asks for: its own description and every
// capability it brings, with one digest over all of it. A [Book] has the
// manifests of a catalog at one moment. The [Desk] keeps what people said in the
// store, and [Desk.Switches] gives it as a value that answers without I/O:
//
//	book := review.NewBook(capabilities)           // once for each snapshot
//	on := desk.Switches(ctx, tenant)               // one Get; once for a listing
//	why, mend := on.Off(book, c)                   // for each capability; "" is on
//
//	err := desk.Check(ctx, tenant, book, c)        // directly before the effect
//
// A [Panel] is both for one tenant over a catalog that changes.
//
// Switches is as new as the moment it was made. Check asks the store, so that
// nothing passes it that was switched off before, by whatever process. A call
// that passed a moment earlier may still begin, and runs to its end.
//
// # What needs review
//
// Every capability that the reader of extension packages made, except those
// that are part of this program. The package's own entry needs none: it runs
// nothing, and must be found so that it can be reviewed. Other runnable
// capabilities (a tool of a CAPABILITY.yaml, a command file) belong to no
// package that could be switched on or off as a whole; policy asks about each
// call of them, and the consent is bound to their hash.
//
// # What is bound
//
// A switch belongs to a tenant, an id and a place: the folder of the package.
// So tools.git of one project says nothing about tools.git of another, or of the
// user. What was accepted is a digest: a package that is changed is off, and on
// again when it is exactly what was accepted.
//
// A package brings no programs: its runners name programs that are installed,
// and only a recipe's ProgramSHA256 pins their bytes. The line numbers of a
// package, the name of the source that found it and the findings of the text
// scan are not part of a digest: they change without the package.
//
// # What is kept
//
// T, I and P are fingerprints of tenant, id and place:
//
//	extension/switch/T/I/P     on or off, the digest, who, when and why
//	extension/accepted/T/I/P   the manifest that was accepted, to tell differences
//	extension/noticed/T/I/P    the digest of the last change that was recorded
//	extension/mark/T           written with every change of a switch
//
// When the store fails, and where a record is of a newer version or damaged,
// everything that needs review is off, and says so.
package review
