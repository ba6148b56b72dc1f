package extension

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"ken/capability"
	"ken/internal/know/source/recipe"
	"ken/internal/know/source/safefs"
	"ken/internal/packagefiles"
)

// Programs that a package brings itself: files in tools/ and bin/, which its own
// actions name as any program, and handlers, which read a call as JSON. No other
// package finds them.

// interpreters run handlers by the ending of their names. Any other handler is a
// program itself.
func interpreter(file string) string {
	switch path.Ext(file) {
	case ".py":
		return "python3"
	case ".js", ".mjs", ".cjs":
		return "node"
	}
	return ""
}

// ownProgram returns the file of a program that the package brings, or "".
func (x *extension) ownProgram(name string) string {
	for _, folder := range []string{"tools", "bin"} {
		file := folder + "/" + name
		if info, err := fs.Lstat(x.Root.FS, path.Join(x.Path, file)); err == nil && info.Mode().IsRegular() {
			return file
		}
	}
	return ""
}

// own makes a capability run a file of the package, or says why it cannot.
func (x *extension) own(c *capability.Capability, s *packageSpec, file string) {
	sum, err := x.files()
	c.Run.Program, c.Run.PackageSHA256 = file, sum
	switch {
	case err != nil:
		c.Unavailable = "its package cannot be identified: " + err.Error()
		x.Warn("bad-package", s.path, s.line, fmt.Sprintf("%s runs %s of its package, which cannot be identified: %v", c.Name, file, err), "remove it from the package")
	case x.Trust < capability.TrustUser:
		c.Unavailable = "it runs " + file + " of its package, which came with a project or from elsewhere; ken add with the path of the package reviews and copies it"
	}
}

// digest identifies all files of the package.
func (x *extension) digest() (string, error) {
	files, err := fs.Sub(x.Root.FS, x.Path)
	if err != nil {
		return "", err
	}
	return packagefiles.Digest(files)
}

// handler makes a capability run a file of the package that reads the call as JSON.
func (x *extension) handler(c *capability.Capability, s *packageSpec) bool {
	file := s.how.handler
	fault := func(message, fix string) bool {
		x.Fault("bad-handler", s.path, s.line, fmt.Sprintf("%s: %s", c.Name, message), fix)
		return false
	}
	if c.Run.Argv != nil {
		return fault("it has a handler and a command", "keep one of them; a handler reads its arguments from standard input")
	}
	if _, err := safefs.Join(x.Path, file); err != nil || path.Clean(file) != file || strings.HasPrefix(file, "work/") {
		return fault(fmt.Sprintf("the handler %q is not a file of the package", file), "write its path from the package's folder, as in handlers.py or bin/greet")
	}
	info, err := fs.Lstat(x.Root.FS, path.Join(x.Path, file))
	if err != nil || !info.Mode().IsRegular() {
		return fault(fmt.Sprintf("the handler %s is not there", file), "put the file there, or correct its name")
	}
	run := interpreter(file)
	if run != "" {
		c.RequiredBins = []string{run}
	} else {
		base := path.Base(file)
		run = strings.ToLower(strings.TrimSuffix(base, path.Ext(base)))
		if !recipe.ToolName().MatchString(run) {
			return fault(fmt.Sprintf("the handler %s cannot name a program", file), "use letters, digits, dots, dashes and underscores")
		}
		if info.Mode()&0o111 == 0 {
			return fault(fmt.Sprintf("the handler %s is not executable", file), "chmod +x it")
		}
	}
	c.Run.Runner, c.Run.Input = recipe.RunnerOf(run), "json"
	x.own(c, s, file)
	x.wantPermission(c.Run.Runner, s)
	return true
}
