package source

import (
	"fmt"

	"ken/capability"
)

// maxListed is how many problems of one catalog are listed one by one.
const maxListed = 100

// A tally lists the first problems of a file with many records and counts the
// rest, so that a file of a million bad rows is one page to read.
type tally struct {
	u             *unit
	listed        int
	faults, warns int // beyond those listed
}

func (t *tally) fault(code string, line int, message, fix string) {
	if t.listed++; t.listed > maxListed {
		t.faults++
		return
	}
	t.u.fault(code, t.u.path, line, message, fix)
}

func (t *tally) warn(code string, line int, message, fix string) {
	if t.listed++; t.listed > maxListed {
		t.warns++
		return
	}
	t.u.warn(code, t.u.path, line, message, fix)
}

// close says how many problems were not listed.
func (t *tally) close() {
	if t.faults+t.warns == 0 {
		return
	}
	severity := capability.Warning
	if t.faults > 0 {
		severity = capability.Grave
	}
	t.u.problems = append(t.u.problems, capability.Problem{
		Severity: severity, Code: "more-problems", Origin: t.u.origin(t.u.path, 0),
		Message: fmt.Sprintf("%d more errors and %d more warnings in this file are not listed", t.faults, t.warns),
		Fix:     "mend the ones above and look again",
	})
}
