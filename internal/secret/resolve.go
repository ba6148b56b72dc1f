package secret

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"ken/capability"
)

// IsReference reports whether a text is a reference that [Store.Resolve]
// reads.
func IsReference(text string) bool {
	_, _, ok := reference(text)
	return ok
}

// reference takes "env:NAME", "file:PATH" or "secret:NAME" apart, each also as
// "${…}".
func reference(text string) (kind, rest string, ok bool) {
	if inner, wrapped := strings.CutPrefix(text, "${"); wrapped {
		if text, ok = strings.CutSuffix(inner, "}"); !ok {
			return "", "", false
		}
	}
	kind, rest, ok = strings.Cut(text, ":")
	if !ok || kind != "env" && kind != "file" && kind != "secret" {
		return "", "", false
	}
	return kind, rest, true
}

// Names returns the names of the secrets that a text refers to, as a whole or in
// ${secret:NAME}.
func Names(text string) []string {
	if name, ok := strings.CutPrefix(text, "secret:"); ok {
		return []string{name}
	}
	var out []string
	for at := strings.Index(text, "${"); at >= 0; at = strings.Index(text, "${") {
		escaped := at > 0 && text[at-1] == '$'
		text = text[at:]
		end := strings.IndexByte(text, '}')
		if end < 0 {
			break
		}
		if kind, name, ok := reference(text[:end+1]); ok && kind == "secret" && !escaped {
			out = append(out, name)
		}
		text = text[2:]
	}
	return out
}

// Resolve reads a reference:
//
//	secret:NAME   the environment's NAME, or else that of the file
//	env:NAME      the environment's NAME only
//	file:PATH     what the file holds, without the line break at its end
//
// each also written as ${secret:NAME} and so on. Anything else is refused
// without being repeated, since it may be the secret itself.
func (s *Store) Resolve(ref string) (Value, error) {
	kind, rest, ok := reference(ref)
	if !ok {
		return Value{}, &capability.Error{
			Kind: capability.Invalid, Op: "resolve secret", Err: errors.New("not a reference to a secret"),
			Fix: "write secret:NAME, env:NAME or file:PATH, and keep the value itself out of files",
		}
	}
	switch kind {
	case "env":
		return s.environment(rest)
	case "file":
		return s.file(rest)
	}
	return s.Lookup(rest)
}

func (s *Store) environment(name string) (Value, error) {
	if err := checkName("resolve secret", name); err != nil {
		return Value{}, err
	}
	v := Of(s.env[name])
	if v.Empty() {
		return v, &capability.Error{
			Kind: capability.NotFound, Op: "resolve secret", Target: "env:" + name,
			Err: errors.New("the variable is not set, or empty"), Fix: "set it where Ken is started",
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold("env:"+name, v)
	return v, nil
}

// file reads a secret from a file of its own, such as a container's.
func (s *Store) file(path string) (Value, error) {
	target := "file:" + path
	fail := func(kind capability.ErrorKind, err error, fix string) (Value, error) {
		return Value{}, &capability.Error{Kind: kind, Op: "resolve secret", Target: target, Err: err, Fix: fix}
	}
	if rest, home := strings.CutPrefix(path, "~/"); home && s.env["HOME"] != "" {
		path = filepath.Join(s.env["HOME"], rest)
	}
	if !filepath.IsAbs(path) {
		return fail(capability.Invalid, errors.New("the path is not absolute"), "write it from the root, or from ~/")
	}
	info, err := os.Stat(path) // before opening: opening a pipe would wait
	if errors.Is(err, fs.ErrNotExist) {
		return fail(capability.NotFound, errors.New("file does not exist"), "make it, with mode 0600")
	}
	if err != nil {
		return fail(capability.Unavailable, err, "see that it can be read")
	}
	if !info.Mode().IsRegular() {
		return fail(capability.Invalid, errors.New("not a plain file"), "name the file that holds the value")
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && tooOpen(path, info, mode) {
		return fail(capability.Denied, fmt.Errorf("mode %04o lets others read or change the file", mode), "chmod 600 "+path)
	}
	f, err := os.Open(path)
	if err != nil {
		return fail(capability.Unavailable, err, "see that it can be read")
	}
	defer f.Close()
	v, err := ReadValue(f)
	if err != nil {
		if e, ours := errors.AsType[*capability.Error](err); ours {
			e.Target = target
		}
		return Value{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold(target, v)
	return v, nil
}

// tooOpen reports whether other users have more access to the file than a secret
// allows. They may never change it. They may read it only if the system provides
// it: if root owns it, or it is in the folder where containers get secrets.
func tooOpen(path string, info fs.FileInfo, mode fs.FileMode) bool {
	if mode&0o077 == 0 {
		return false
	}
	if mode&0o022 != 0 {
		return true
	}
	given := strings.HasPrefix(path, "/run/secrets/") || strings.HasPrefix(path, "/var/run/secrets/")
	return !given && !ofSystem(info)
}

// Expand replaces every ${secret:NAME}, ${env:NAME} and ${file:PATH} in a text,
// once: what comes out is not read again. "$${" stands for "${". One that
// cannot be resolved fails the whole. The result is a secret when it holds
// one, and its whole is known to the redactor too.
func (s *Store) Expand(text string) (Value, error) {
	var out strings.Builder
	found := false
	for rest := text; ; {
		at := strings.Index(rest, "${")
		if at < 0 {
			out.WriteString(rest)
			break
		}
		if at > 0 && rest[at-1] == '$' {
			out.WriteString(rest[:at-1] + "${")
			rest = rest[at+2:]
			continue
		}
		out.WriteString(rest[:at])
		end := strings.IndexByte(rest[at:], '}')
		if end < 0 {
			return Value{}, &capability.Error{
				Kind: capability.Invalid, Op: "resolve secret", Err: fmt.Errorf("the ${ at byte %d is never closed", len(text)-len(rest)+at),
				Fix: "close it with }, or write $${ for the two characters",
			}
		}
		v, err := s.Resolve(rest[at : at+end+1])
		if err != nil {
			return Value{}, err
		}
		out.WriteString(v.Reveal())
		found, rest = true, rest[at+end+1:]
	}
	v := Of(out.String())
	if found {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hold("", v)
	}
	return v, nil
}
