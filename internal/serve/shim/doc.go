// Package shim is what a client starts for every window: ken mcp. It finds the
// user's daemon, starts it where there is none, and then passes lines between the
// client's stdio and the daemon's socket. When the daemon dies it goes on with
// another. It also holds the words that the two say to each other first; see
// [Hello].
//
// It is light because a window costs one of it: it imports little, and package
// entry runs it before the rest of the program is initialised.
package shim
