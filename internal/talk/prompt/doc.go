// Package prompt makes what a model is sent: the system prompt of layers
// ([Assemble]), the messages of what is live in a session ([Messages]), and the
// plan by which a long conversation is made to fit ([Fit]).
//
// All of it but [Load] is pure. The same arguments give the same bytes, and
// what was once made of an entry is made of it again: a provider's prompt cache
// goes by exact prefixes, and [Broke] says what broke one.
package prompt
