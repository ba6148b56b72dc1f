package mcpgateway

import (
	"fmt"
	"slices"

	"ken/capability"
	"ken/internal/run/mcpgateway/link"
	"ken/internal/serverenv"
)

// missed returns the variables that are set here and that a server probably needs
// and does not get. Said is what the server printed.
func (g *Gateway) missed(def *Server, said string) []string {
	if def.Command == "" {
		return nil
	}
	set := func(name string) bool {
		_, ok := g.cfg.Getenv("env:" + name)
		return ok
	}
	names := slices.Concat(passed, homely) // a confined one could not use the latter
	return serverenv.Missed(
		serverenv.Program{Name: def.Name, Command: def.Command, Args: def.Args, Env: def.Env}, said, set,
		func(name string) bool { return slices.Contains(names, name) },
	)
}

// withMissed adds to a failure what the server might miss, and the line that passes
// it on.
func (b *backend) withMissed(cause error, fix string) (newFix string, newCause error) {
	names := b.s.g.missed(&b.s.def, cause.Error())
	if len(names) == 0 {
		return fix, cause
	}
	more := "write " + serverenv.Line(names) + " into its definition"
	if fix != "" {
		more = fix + "; or " + more
	}
	return more, link.WithRemedy(fmt.Errorf("%w; %s", cause, serverenv.Sentence(names)), link.Elsewhere)
}

// missedProblem says what a server that works might miss.
func (s *server) missedProblem() (capability.Problem, bool) {
	names := s.g.missed(&s.def, "")
	if len(names) == 0 {
		return capability.Problem{}, false
	}
	return capability.Problem{
		Severity: capability.Warning, Code: "mcp-env", Origin: s.origin(), Message: serverenv.Sentence(names),
		Fix: "to pass " + serverenv.Them(names) + " on, write " + serverenv.Line(names) + " into the definition of " + s.def.Name,
	}, true
}
