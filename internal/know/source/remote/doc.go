// Package remote reads capabilities from an address.
//
// A [Remote] fetches a file, keeps a copy of the last good one, and reads it by
// the same formats as a file on disk. Addresses are checked before each
// connection, so that no page leads to a private network.
package remote
