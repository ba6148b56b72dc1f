package mcpservers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/run/mcpgateway"
)

// List starts the named servers, or those that were never listed, asks them for
// their tools and returns their status.
func (s *Servers) List(ctx context.Context, names ...string) []mcpgateway.Status {
	if s.gateway == nil {
		return nil
	}
	return s.gateway.List(ctx, names...)
}

// ListFirst lists the servers that were never listed, for a process that ends soon
// after. It waits for them as long as a search does. For a server that one of the
// targets names it waits until it has answered, failed or run out of its
// startTimeout.
func (s *Servers) ListFirst(ctx context.Context, targets ...string) {
	if s.gateway == nil {
		return
	}
	var names []string
	for _, target := range targets {
		name, _, ok := serverOf(target)
		if command, is := strings.CutPrefix(target, "/"); is {
			name, _, ok = strings.Cut(command, ":") // as in /NAME:TOOL
		}
		if ok {
			names = append(names, name)
		}
	}
	s.ends.Store(true)
	s.gateway.ListNew(ctx, awaitTime, names...)
}

// Relist takes over the accepted definition of a server and lists the server. If
// the gateway is shared, its owner does the listing.
func (s *Servers) Relist(ctx context.Context, name string) {
	s.replace()
	if !s.Shared() {
		s.List(ctx, name)
	}
}

// Status returns the status of every server.
func (s *Servers) Status() []mcpgateway.Status {
	if s.gateway == nil {
		return nil
	}
	return s.gateway.Status()
}

const (
	// awaitTime is how long a search, or a call of an unknown tool, waits for
	// servers that are being listed for the first time.
	awaitTime = 2 * time.Second

	// awaitNamed is how long a call waits for the one server that its target names.
	awaitNamed = 10 * time.Second
)

// Await waits for servers that are being listed for the first time, and reports
// whether there were any. If target is a tool of such a server, it waits for that
// server alone, and longer.
func (s *Servers) Await(ctx context.Context, target capability.ID) bool {
	if s.gateway == nil {
		return false
	}
	server, _, named := serverOf(string(target))
	patience := awaitTime
	if named {
		patience = awaitNamed
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.gateway.Await(ctx, server)
}

// serverOf returns the server and the tool that an id names; false means that it
// is not the id of a server's tool.
func serverOf(id string) (server, tool string, ok bool) {
	rest, ok := strings.CutPrefix(id, "mcp:")
	if !ok {
		return "", "", false
	}
	server, tool, _ = strings.Cut(rest, "/")
	return server, tool, true
}

// Starting names the servers that are being listed for the first time, or that
// were never listed if this process lists none. Only the operator sees the
// names; others see how many there are.
func (s *Servers) Starting(p capability.Principal) string {
	if s.gateway == nil {
		return ""
	}
	starting, unlisted := s.gateway.Starting()
	say := func(names []string, one, many, then string) string {
		if names = s.namesInWorkspace(names); len(names) == 0 {
			return ""
		}
		text := "1 server " + one
		if len(names) > 1 {
			text = fmt.Sprintf("%d servers %s", len(names), many)
		}
		if s.isOperator(p) {
			text += ": " + strings.Join(names, ", ")
		}
		return text + "; " + then
	}
	then := "try again in a moment"
	if s.ends.Load() { // and the servers end with it
		then = "ken doctor waits until it has listed its tools"
	}
	return cmp.Or(say(starting, "is starting", "are starting", then),
		say(unlisted, "was never listed", "were never listed", "ken doctor lists them"))
}

// Absent returns why a server has no tools, if name is the id of one of its
// tools. Only the operator is told.
func (s *Servers) Absent(p capability.Principal, name string) error {
	server, _, ok := serverOf(name)
	if !ok || s.gateway == nil || !s.isOperator(p) {
		return nil
	}
	for _, st := range s.gateway.Status() {
		if st.Name != server || !st.Listed.IsZero() || len(s.namesInWorkspace([]string{server})) == 0 {
			continue
		}
		cause, fix := st.Err, st.Fix
		switch {
		case st.State == mcpgateway.Disabled:
			cause, fix = "it is disabled in its definition", ""
		case cause == "":
			return nil
		}
		return &capability.Error{
			Kind: capability.Unavailable, Op: "find", Target: name,
			Err: fmt.Errorf("the MCP server %s (%s) never listed its tools: %s", server, st.State, cause), Fix: fix,
		}
	}
	return nil
}

// WhyAbsent returns why there is no capability of an id, for the operator: what
// is known of the MCP server that the id names. Other errors are returned as
// they are.
func (s *Servers) WhyAbsent(p capability.Principal, name string, err error) error {
	if why := s.Absent(p, name); why != nil {
		return why
	}
	server, tool, ok := serverOf(name)
	if !ok || capability.KindOf(err) != capability.NotFound {
		return err
	}
	absent := func(format string, args ...any) error {
		return &capability.Error{Kind: capability.NotFound, Op: "find", Target: name, Err: fmt.Errorf(format, args...)}
	}
	defs := s.Definitions()
	i := slices.IndexFunc(defs, func(d mcpgateway.Server) bool { return d.Name == server })
	switch {
	case i < 0:
		return absent("there is no MCP server %s; see mcp.servers, mcp.json and mcp.import", server)
	case defs[i].Disabled:
		return absent("the MCP server %s is disabled (%s); ken extension enable mcp:%[1]s enables it", server, defs[i].Origin.String())
	case tool == "":
		return absent("this is an MCP server; name one of its tools, as in mcp:%s/TOOL", server)
	case !defs[i].Wants(tool):
		return absent("the MCP server %s is defined without the tool %s (include and exclude in %s)", server, tool, defs[i].Origin.String())
	}
	return absent("the MCP server %s lists no tool %s; ken catalog list shows those that it lists", server, tool)
}

// Unset returns which servers of the workspace cannot be started because a
// variable or secret that they refer to is not set.
func (s *Servers) Unset() []string {
	unset := s.gateway.Unset()
	if len(unset) == 0 {
		return nil
	}
	var out []string
	for _, src := range s.Sources() {
		name := strings.TrimPrefix(src.Name(), "mcp:")
		if why := unset[name]; why != "" {
			out = append(out, name+": "+why)
		}
	}
	return out
}

func (s *Servers) isOperator(p capability.Principal) bool {
	return p.ID == s.cfg.Operator.ID && p.Tenant == s.cfg.Operator.Tenant
}

// namesInWorkspace returns those of the named servers that apply to the
// workspace.
func (s *Servers) namesInWorkspace(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	var here []string
	for _, src := range s.Sources() {
		here = append(here, strings.TrimPrefix(src.Name(), "mcp:"))
	}
	return slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(here, name) })
}
