// Package safefs reads files that may not be trusted.
//
// A [Root] is confined to one directory: no path and no link leads out of it,
// no file is read beyond a limit, and nothing waits for a pipe or a device. Its
// errors are an [Error], with a code and the way to correct the file.
package safefs
