package format

import (
	"fmt"

	"ken/capability"
)

// MaxReported is how many problems of one catalog are listed one by one.
const MaxReported = 100

// A Tally lists the first problems of a file with many records and counts the
// rest, so that a file of a million bad rows is one page to read.
type Tally struct {
	Unit          *Unit
	listed        int
	faults, warns int // beyond those listed
}

// Fault records that something was lost.
func (t *Tally) Fault(code string, line int, message, fix string) {
	if t.listed++; t.listed > MaxReported {
		t.faults++
		return
	}
	t.Unit.Fault(code, t.Unit.Path, line, message, fix)
}

// Warn records that something looks wrong.
func (t *Tally) Warn(code string, line int, message, fix string) {
	if t.listed++; t.listed > MaxReported {
		t.warns++
		return
	}
	t.Unit.Warn(code, t.Unit.Path, line, message, fix)
}

// Close says how many problems were not listed.
func (t *Tally) Close() {
	if t.faults+t.warns == 0 {
		return
	}
	severity := capability.Warning
	if t.faults > 0 {
		severity = capability.Grave
	}
	t.Unit.Problems = append(t.Unit.Problems, capability.Problem{
		Severity: severity, Code: "more-problems", Origin: t.Unit.Origin(t.Unit.Path, 0),
		Message: fmt.Sprintf("%d more errors and %d more warnings in this file are not listed", t.faults, t.warns),
		Fix:     "fix the ones above and look again",
	})
}
