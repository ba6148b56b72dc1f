package catalog

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"ken/capability"
)

// A Machine answers what a capability needs of its surroundings. It is asked
// for presence only, never for values.
type Machine struct {
	Platform  string                 // as runtime.GOOS
	HasSecret func(name string) bool // nil: there are none
	HasBin    func(name string) bool // nil: there are none

	// Programs is called once per rebuild. What it returns says why the program
	// that runs a capability cannot be run, or ""; nil: the catalog does not
	// check this.
	Programs func() func(*capability.Capability) string

	// Unrun returns why nothing here runs what [capability.Capability.RunBy]
	// names, or "" if something does; nil: the catalog does not check this.
	Unrun func(*capability.Capability) string
}

// ThisMachine looks at the process's environment and PATH.
func ThisMachine() Machine {
	return Machine{
		Platform:  runtime.GOOS,
		HasSecret: func(name string) bool { return os.Getenv(name) != "" },
		HasBin: func(name string) bool {
			// A path would be found relative to whatever directory is open.
			if strings.ContainsAny(name, `/\`) {
				return false
			}
			_, err := exec.LookPath(name)
			return err == nil
		},
	}
}

// remember asks each question once per rebuild. bins are the answers of HasBin.
func (m Machine) remember() (out Machine, bins map[string]bool) {
	bins = map[string]bool{}
	m.HasSecret, m.HasBin = memo(m.HasSecret, map[string]bool{}), memo(m.HasBin, bins)
	if m.Programs != nil {
		unusable := m.Programs()
		m.Programs = func() func(*capability.Capability) string { return unusable }
	}
	return m, bins
}

func memo(ask func(string) bool, known map[string]bool) func(string) bool {
	return func(name string) bool {
		yes, ok := known[name]
		if !ok {
			yes = ask != nil && ask(name)
			known[name] = yes
		}
		return yes
	}
}

// unrun returns why nothing here runs a capability, or "". It does not repeat a
// reason that the source gives.
func (m Machine) unrun(c *capability.Capability) string {
	if m.Unrun == nil || c.RunBy() == "" || c.Unavailable != "" || c.Kind == capability.KindChannel && c.Run == nil {
		return ""
	}
	return m.Unrun(c)
}

// missing returns what is missing to use a capability, dependencies not counted.
func (m Machine) missing(c *capability.Capability) Reasons {
	var out Reasons
	if c.Unavailable != "" {
		out = append(out, Reason{Kind: Declared, Text: c.Unavailable})
	}
	if why := m.unrun(c); why != "" {
		out = append(out, Reason{Kind: NoRunner, Text: why}) // comes first: fixing the other reasons would not help
	}
	if c.Kind == capability.KindChannel && c.Run == nil {
		out = append(out, Reason{Kind: NoSender})
	}
	if len(c.RequiredPlatforms) > 0 && !slices.Contains(c.RequiredPlatforms, m.Platform) {
		out = append(out, Reason{Kind: WrongPlatform, Name: strings.Join(c.RequiredPlatforms, ", ")})
	}
	installed := true
	for _, name := range c.RequiredBins {
		if !m.HasBin(name) {
			out, installed = append(out, Reason{Kind: MissingProgram, Name: name}), false
		}
	}
	if m.Programs != nil && c.Run != nil && installed {
		if why := m.Programs()(c); why != "" {
			out = append(out, Reason{Kind: UnusableProgram, Text: why})
		}
	}
	for _, name := range c.RequiredSecrets {
		if !m.HasSecret(name) {
			out = append(out, Reason{Kind: MissingSecret, Name: name})
		}
	}
	return out
}
