// Package prompt builds what a model is sent: the system prompt from layers
// ([Assemble]), the messages of a session's live entries ([Messages]), and the
// plan that makes a long conversation fit ([Fit]).
//
// All of it is pure: it reads no file and no clock. The same arguments give the
// same bytes, and what was once made of an entry is made of it again: a
// provider's prompt cache goes by exact prefixes, and [Broke] says what broke
// one.
package prompt
