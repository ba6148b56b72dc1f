package app

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/connect"
	"ken/internal/govern/audit"
	"ken/internal/govern/pin"
	"ken/internal/run/mcpgateway"
)

// The files of mcp.import are not Ken's own: other programs write to them, and
// servers that Ken is to hold can. So what they define is pinned, as tools are:
// the first reading of a file is trusted as a whole, and a server that is new or
// different in it later is not started until a person has seen what differs.

// definedTool is the name under which a definition stands among the tools of a
// server that wait.
const definedTool = "(definition)"

// fileTool is pinned with the definitions of a file, so that one without any is
// trusted for having none. No server has this name.
const fileTool = "(the file)"

// definitionsKey is that of the pins of a file's definitions. A file's path
// begins with a slash, so that it is no server's key.
func definitionsKey(file string) string { return pin.ServerKey("mcp.import", "definitions in "+file) }

// openDefinitions makes the desk for definitions. No setting accepts them by
// itself.
func (a *App) openDefinitions() (*pin.Desk, error) {
	s, err := a.store.get()
	if err != nil {
		return nil, err
	}
	return pin.New(s, pin.Config{
		Reviewers: a.Settings.Approval.Approvers, Reserved: capability.OwnTools(), Plain: func() bool { return false }, Log: a.notePins,
	})
}

// held says of the servers of a file of mcp.import why they may not be started,
// by name; the rest may.
func (a *App) held(ctx context.Context, file string, list []connect.Server) map[string]string {
	out := map[string]string{}
	verdicts, err := a.judge(ctx, file, list)
	for _, s := range list {
		switch v := verdicts[s.Name]; {
		case v.State == pin.Accepted:
		case err != nil:
			out[s.Name] = "nobody could tell whether it is: " + err.Error()
		case v.State == pin.Added:
			out[s.Name] = "it was not in the file before; " + plainFields(v.Diff)
		default:
			out[s.Name] = plainFields(v.Diff)
		}
	}
	return out
}

// judge says how the definitions of a file stand, by name.
func (a *App) judge(ctx context.Context, file string, list []connect.Server) (map[string]pin.Verdict, error) {
	desk, err := a.serving.definitions.get()
	if err != nil {
		return nil, err
	}
	key, err := audit.LoadKey(a.auditKey())
	if err != nil {
		return nil, err
	}
	tools := []pin.Tool{{Name: fileTool}}
	for _, s := range list {
		tools = append(tools, definitionOf(key, s))
	}
	verdicts, err := desk.Check(ctx, definitionsKey(file), tools)
	if err != nil {
		return verdicts, err
	}
	off := map[string]string{}
	for _, s := range list {
		if v := verdicts[s.Name]; v.State == pin.Changed && s.Disabled {
			off[s.Name] = v.Hash
		}
	}
	if len(off) == 0 {
		return verdicts, nil
	}
	if err := a.switchedOff(ctx, desk, definitionsKey(file), off); err != nil {
		return verdicts, err
	}
	return desk.Check(ctx, definitionsKey(file), tools)
}

// switchedOff accepts that servers were switched off, where nothing else about
// them differs: nobody needs to look at that, and what switches them on again
// waits. off has their hashes, by name.
func (a *App) switchedOff(ctx context.Context, desk *pin.Desk, key string, off map[string]string) error {
	all, err := desk.Pending(ctx, key)
	if err != nil {
		return err
	}
	shown := map[string]string{}
	for _, w := range all {
		if w.Hash == off[w.Tool] && len(w.Differences) == 1 && w.Differences[0].Field == definedField+"disabled" {
			shown[w.Tool] = w.Hash
		}
	}
	return desk.Accept(ctx, key, shown, capability.Principal{ID: "mcp.import", Roles: a.Settings.Approval.Approvers})
}

// plainFields takes the word of tools from what differs in a definition.
func plainFields(text string) string { return strings.ReplaceAll(text, definedField, "") }

const definedField = "input."

// definitionWaits returns the definition of a server as it waits for a person; nil
// where it does not.
func (a *App) definitionWaits(ctx context.Context, s mcpgateway.Server) (*pin.Waiting, error) {
	if s.Held == "" {
		return nil, nil
	}
	desk, err := a.serving.definitions.get()
	if err != nil {
		return nil, err
	}
	all, err := desk.Pending(ctx, definitionsKey(s.Origin.Path))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(w pin.Waiting) bool { return w.Tool == s.Name })
	if i < 0 {
		return nil, nil
	}
	w := all[i]
	w.Tool = definedTool
	w.Differences = slices.Clone(w.Differences)
	for i := range w.Differences {
		f := &w.Differences[i].Field
		if *f = strings.TrimPrefix(*f, definedField); *f == "input" {
			*f = definedTool
		}
	}
	return &w, nil
}

// acceptDefinition lets a definition be used that a person has seen, and has the
// server listed.
func (a *App) acceptDefinition(ctx context.Context, by capability.Principal, r ServerReview) error {
	desk, err := a.serving.definitions.get()
	if err != nil {
		return err
	}
	if err := desk.Accept(ctx, definitionsKey(r.file), map[string]string{r.Server: r.defined.Hash}, by); err != nil {
		return err
	}
	list := a.servers()
	if a.shared {
		return nil // who has the gateway sees it too
	}
	a.gateway.Replace(list)
	a.ListServers(ctx, r.Server)
	return nil
}

// definitionsChanged reports whether something was written about the definitions
// that wait since they were judged.
func (a *App) definitionsChanged(ctx context.Context) bool {
	a.serving.mu.Lock()
	judged := maps.Clone(a.serving.judged)
	a.serving.mu.Unlock()
	for file, was := range judged {
		if now := a.definitionsAt(ctx, file); now != was || now == unknownRevision {
			return true
		}
	}
	return false
}

const unknownRevision = -1

// definitionsAt is a number that changes with what is written about the
// definitions of a file.
func (a *App) definitionsAt(ctx context.Context, file string) int64 {
	desk, err := a.serving.definitions.get()
	if err != nil {
		return unknownRevision
	}
	now, err := desk.Revision(ctx, definitionsKey(file))
	if err != nil {
		return unknownRevision
	}
	return now
}

// readServerFile reads a file that names servers, which may be another's.
func readServerFile(file string) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "read", Path: file, Err: fmt.Errorf("it is no file")}
	case info.Size() > connect.Largest:
		return nil, &fs.PathError{Op: "read", Path: file, Err: fmt.Errorf("it has more than %d bytes", connect.Largest)}
	}
	return os.ReadFile(file)
}

// projectOf returns the folder that a file with servers lies in for a client: of a
// project's .mcp.json its own, of .cursor/mcp.json the one above.
func projectOf(file string) string {
	dir, base := filepath.Split(filepath.Clean(file))
	dir = filepath.Clean(dir)
	if strings.HasPrefix(base, ".") {
		return dir
	}
	if strings.HasPrefix(filepath.Base(dir), ".") {
		return filepath.Dir(dir)
	}
	return ""
}
