// Package shim implements ken mcp, which a client starts for every window. It
// finds the user's daemon, or starts it, and then passes lines between the
// client's stdio and the daemon's socket. If the daemon dies, it continues with
// another. It also holds the words that the two say to each other first; see
// [Hello].
//
// It is light because a window costs one of it: it imports little, and package
// entry runs it before the rest of the program is initialised.
package shim
