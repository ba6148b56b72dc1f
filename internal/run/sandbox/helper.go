package sandbox

import "ken/internal/run/sandbox/confine"

// Helper does the helper's work in a process started as the sandbox's helper,
// and does not return there; in any other it returns at once.
//
// Package confine has called it already while the program was initialised,
// before most of what else the program links, which would only cost the
// helper time. In main it tells the reader that this binary has other modes.
func Helper() { confine.Dispatch() }
