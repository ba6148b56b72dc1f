package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/packagefiles"
	"ken/internal/run/executor"
)

// own finds the program that a package brings itself, and makes sure that all
// files of the package are those that were reviewed. It returns what to run: the
// file, or its interpreter, which then has the file as its first argument.
func (e *Executor) own(call capability.Call, p *plan) (program string, err error) {
	c := p.capability
	deny := func(err error, fix string) (string, error) {
		return "", &capability.Error{Kind: capability.Denied, Op: "run", Target: string(call.Target), Rule: "package", Err: err, Fix: fix}
	}
	dir, ok := e.packageDir(c)
	if !ok {
		return deny(fmt.Errorf("%s belongs to a package and runs only from %s", c.Run.Program, e.cfg.Extensions), "add the package with ken add PATH")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return deny(errors.New("the folder of its package cannot be opened"), "add the package again with ken add")
	}
	defer root.Close()
	sum, err := packagefiles.Digest(root.FS())
	switch {
	case err != nil:
		return deny(fmt.Errorf("cannot identify its package: %w", err), "add the package again with ken add")
	case c.Run.PackageSHA256 == "" || sum != c.Run.PackageSHA256:
		return deny(errors.New("the files of the package changed since they were read"), "review it again: ken extension review "+p.extension)
	case !filepath.IsLocal(filepath.FromSlash(c.Run.Program)):
		return deny(fmt.Errorf("%s is not in its package", c.Run.Program), "correct its manifest")
	}
	p.dir = dir
	file := filepath.Join(dir, filepath.FromSlash(c.Run.Program))
	if len(c.RequiredBins) > 0 { // the interpreter
		p.argv = slices.Insert(p.argv, 1, file)
		return p.argv[0], nil
	}
	return file, nil
}

// packageDir returns the folder of a capability's package, if it is one of the
// user's own extensions. What a program writes is never a package.
func (e *Executor) packageDir(c *capability.Capability) (string, bool) {
	if c.Origin.Format != capability.FormatExtension || c.Origin.Location == capability.Remote || c.Trust < capability.TrustUser {
		return "", false
	}
	dir := filepath.Dir(c.Origin.Path)
	if filepath.Base(dir) == "commands" {
		dir = filepath.Dir(dir)
	}
	rel, err := filepath.Rel(e.cfg.Extensions, dir)
	if err != nil || rel == "." || !filepath.IsLocal(rel) || slices.Contains(strings.Split(filepath.ToSlash(rel), "/"), "work") {
		return "", false
	}
	return dir, true
}

// input makes the argument list and the standard input of a program that reads
// its call as JSON.
func (s schema) input(c *capability.Capability, arguments json.RawMessage) (argv []string, text []byte, err error) {
	tool, err := Tool(c.Run.Runner)
	if err != nil {
		return nil, nil, err
	}
	if c.Run.Input != "json" {
		return nil, nil, fmt.Errorf("unknown input format %q", c.Run.Input)
	}
	values, err := s.values(arguments)
	if err != nil {
		return nil, nil, err
	}
	text, err = json.Marshal(map[string]any{"action": c.Run.Action, "arguments": values})
	return []string{tool}, append(text, '\n'), err
}

// answerAsJSON makes a part of a result JSON that a program wrote as one JSON text.
func answerAsJSON(r *capability.Result) {
	for i, p := range r.Parts {
		text := bytes.TrimSpace([]byte(p.Text))
		if p.MIME == executor.MIMEStdout && len(text) > 0 && json.Valid(text) && r.Meta["truncated"] != "true" {
			r.Parts[i] = capability.Part{JSON: json.RawMessage(text)}
		}
	}
}
