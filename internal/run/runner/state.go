package runner

import (
	"time"

	"ken/capability"
)

// A State is how far a call has come.
type State uint8

// The states, in the only order in which a call passes them. A call that is
// refused goes from Created or Validating to Logging, and one that breaks or
// takes too long from Executing through Processing; every call passes Logging
// and ends in one of the last three.
const (
	Created State = iota
	Validating
	Executing
	Processing
	Logging
	Completed
	Failed
	TimedOut
)

var stateNames = [...]string{
	"CREATED", "VALIDATING", "EXECUTING", "PROCESSING", "LOGGING", "COMPLETED", "FAILED", "TIMEOUT",
}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "UNKNOWN"
}

// MarshalText writes the word for the state.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Progress says how far along a call in this state is, in the seed's stages.
func (s State) Progress() (percent int, stage string) {
	switch s {
	case Created:
		return 5, "VALIDATING"
	case Validating:
		return 15, "LOADING"
	case Executing:
		return 60, "EXECUTING"
	case Processing, Logging:
		return 90, "FINALIZING"
	}
	return 100, "DONE"
}

// A Stager is the Live of a call that is told how far the call has come each
// time its state changes: see [State.Progress]. Stage must not block.
type Stager interface {
	Stage(percent int, name string)
}

// A Transition is one change of state, with the event that made it: validate,
// validated, invalid, success, error, timeout, processed or logged. The first,
// to Created, has none.
type Transition struct {
	Call   uint64 // which call of this Runner, from 1
	Target capability.ID
	State  State
	Event  string
	At     time.Time
}

// Events that end an execution.
const (
	eventSuccess = "success"
	eventError   = "error"
	eventTimeout = "timeout"
)

// follows returns the event that leads from one state to the next, where one
// does. executed is what ended the execution.
func follows(from, to State, executed string) (event string, ok bool) {
	switch {
	case from == Created && to == Created:
		return "", true
	case from == Created && to == Validating:
		return "validate", true
	case from == Validating && to == Executing:
		return "validated", true
	case (from == Created || from == Validating) && to == Logging:
		return "invalid", true
	case from == Executing && to == Processing:
		return executed, executed != ""
	case from == Processing && to == Logging:
		return "processed", true
	case from == Logging && to > Logging && int(to) < len(stateNames):
		return "logged", true
	}
	return "", false
}
