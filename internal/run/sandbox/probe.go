package sandbox

import "context"

// A Report is what [Probe] found.
type Report struct {
	// Isolation is what a best-effort run gets.
	Isolation Isolation `json:"isolation"`
	// Attempts are the canary's tries under that profile.
	Attempts []Attempt `json:"attempts"`
}

// An Attempt is one try to get out.
type Attempt struct {
	Name    string `json:"name"`
	Stopped bool   `json:"stopped"`
	Detail  string `json:"detail,omitempty"` // what stopped it, or what it did
}

// Probe finds the strongest profile that holds here: it lets a canary try to
// get out of each, strongest first, and looks at what came of it. That is done
// once for the process; later calls return the same Report.
func Probe(context.Context) Report { return probed() }
