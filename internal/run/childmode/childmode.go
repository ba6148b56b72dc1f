// Package childmode is what the program does in the processes that Ken starts of
// the program itself: the helper of the sandbox, and the process in which an
// SQLite statement runs.
package childmode

import (
	"ken/internal/run/executor/db"
	"ken/internal/run/sandbox"
)

// Run does the work of such a process and does not return there. In any other
// process it returns at once. It must be the first statement of main.
func Run() {
	sandbox.Helper()
	db.Child()
}
