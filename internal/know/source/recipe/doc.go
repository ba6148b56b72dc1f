// Package recipe checks how a capability is to be run: its runner, the words of
// its command line, where arguments go, and the options around them.
package recipe
