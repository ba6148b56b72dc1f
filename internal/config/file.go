package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"ken/capability"
	"ken/internal/yamldoc"
)

// limits are far above what people write and below what is slow to parse.
func limits() yamldoc.Limits { return yamldoc.Limits{Bytes: fileLimit, Keys: 40_000, Depth: 16} }

const fileLimit = mib

// parse reads YAML, or JSON alone where the file's name says so.
func parse(file string, data []byte) (*yamldoc.Map, error) {
	if isJSON(file) && len(data) <= fileLimit && !json.Valid(trimBOM(data)) {
		return nil, notJSON(data)
	}
	return yamldoc.Parse(data, limits())
}

func isJSON(file string) bool { return strings.EqualFold(filepath.Ext(file), ".json") }

func notJSON(data []byte) error {
	e := &yamldoc.Error{Message: "this is not JSON", Fix: "correct it there, or rename the file to ken.yaml"}
	data = trimBOM(data)
	var v any
	if s, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(data, &v)); ok {
		e.Message += ": " + s.Error()
		e.Line = 1 + strings.Count(string(data[:min(int(s.Offset), len(data))]), "\n")
	}
	return e
}

const byteOrderMark = "\ufeff"

func trimBOM(data []byte) []byte { return bytes.TrimPrefix(data, []byte(byteOrderMark)) }

// visible shows control characters, which a parser may repeat from the file.
func visible(s string) string {
	var b strings.Builder
	for _, c := range s {
		if unseen(c) {
			fmt.Fprintf(&b, "<%U>", c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// readFile reads a regular file of bounded size and never waits for one.
func readFile(name string) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	return readOpen(f)
}

// readProjectFile is readFile for a file of a project. Links that lead out of the
// project are not followed: errors quote the file, and models may see them.
func readProjectFile(project, name string) ([]byte, fs.FileInfo, error) {
	rel, err := filepath.Rel(project, name)
	if err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(project)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if _, outside := os.Stat(name); outside == nil {
			err = errors.New("a link on the way to it leads out of the project, and is not followed")
		}
		return nil, nil, err
	}
	return readOpen(f)
}

// readOpen reads a file and closes it.
func readOpen(f *os.File) ([]byte, fs.FileInfo, error) {
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errors.New("not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, fileLimit+1))
	if err == nil && len(data) > fileLimit {
		err = fmt.Errorf("larger than %d bytes", fileLimit)
	}
	return data, info, err
}

const codeUnreadable = "unreadable"

func unreadable(file string, err error) capability.Problem {
	p := capability.Problem{
		Code: codeUnreadable, Origin: capability.Origin{Path: file},
		Message: err.Error(), Fix: "put a small text file there, or remove it",
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		p.Message = pe.Err.Error()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.Message, p.Fix = "the file is not there", "create it, or name another"
	case errors.Is(err, fs.ErrPermission):
		p.Fix = "make it readable for this user"
	}
	return p
}
