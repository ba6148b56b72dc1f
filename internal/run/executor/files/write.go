package files

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"ken/capability"
	"ken/internal/run/executor"
)

const writeSchema = `{"type":"object","properties":{` +
	`"path":{"type":"string","description":"File, relative to the workspace"},` +
	`"content":{"type":"string","x-ken-rest":true,"description":"The whole content"},` +
	`"expect":{"type":"string","description":"Hash that read_file gave for the existing file. Left out, the file must not exist yet"}},` +
	`"required":["path","content"],"additionalProperties":false}`

type writeInput struct {
	Path    string  `json:"path"`
	Content *string `json:"content"`
	Expect  string  `json:"expect"`
}

// A writing is what is told about a file that was written.
type writing struct {
	Path    string `json:"path"`
	Bytes   int    `json:"bytes"`
	Hash    string `json:"hash,omitempty"`
	Created bool   `json:"created,omitempty"`
	Deleted bool   `json:"deleted,omitempty"`
	Moved   []int  `json:"moved,omitempty"` // edits that were found at another line than they said, from 1
}

func (e *Executor) writeFacts(call capability.Call) ([]executor.Path, bool, error) {
	_, p, err := e.writeInput(call)
	return []executor.Path{{Name: p.shown, Write: true}}, false, err
}

func (e *Executor) writeInput(call capability.Call) (writeInput, place, error) {
	in, err := executor.Decode[writeInput](call)
	if err != nil {
		return in, place{}, err
	}
	if in.Content == nil {
		return in, place{}, executor.BadArguments(call, errors.New("content is missing"), `write "" to mean an empty file`)
	}
	if int64(len(*in.Content)) > e.cfg.MaxFile {
		return in, place{}, executor.BadArguments(call, fmt.Errorf("content has %d bytes, more than %d", len(*in.Content), e.cfg.MaxFile), "write a smaller file")
	}
	p, err := e.target("write", in.Path)
	return in, p, err
}

// target finds a file that is to be changed.
func (e *Executor) target(op, name string) (place, error) {
	p, err := e.locate(op, name, true)
	if err != nil {
		return p, err
	}
	if p.rel == "." || strings.HasSuffix(name, "/") {
		return p, &capability.Error{Kind: capability.Invalid, Op: op, Target: p.shown, Err: errors.New("is a folder"), Fix: "name a file"}
	}
	if strings.HasPrefix(path.Base(p.rel), tempPrefix) {
		return p, &capability.Error{Kind: capability.Invalid, Op: op, Target: p.shown, Err: errors.New("names that begin with " + tempPrefix + " are used while writing"), Fix: "choose another name"}
	}
	return p, p.admit(op, false)
}

func (e *Executor) write(_ context.Context, call capability.Call) (capability.Result, error) {
	in, p, err := e.writeInput(call)
	if err != nil {
		return capability.Result{}, err
	}
	e.writing.Lock()
	defer e.writing.Unlock()
	was, err := e.expected(in, p)
	if err != nil {
		return trouble("write", p, err)
	}
	done, err := e.store(p, was, []byte(*in.Content))
	if err != nil {
		return trouble("write", p, err)
	}
	return answer(done, "", false), nil
}

// expected loads the file that is to be written, nil where there is none yet,
// and refuses one that is not as the call expects it.
func (e *Executor) expected(in writeInput, p place) (*loaded, error) {
	was, err := e.load(p)
	switch {
	case err == nil && in.Expect == "":
		return nil, stale(p, "the file already exists", "read it, and give its hash as expect to replace it; or use apply_diff")
	case err == nil && !strings.EqualFold(in.Expect, hashOf(was.data)):
		return nil, stale(p, "the file changed since it was read", "read it again, then write")
	case errors.Is(err, fs.ErrNotExist) && in.Expect != "":
		return nil, stale(p, "the file no longer exists", "omit expect to create it")
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	}
	return was, err
}

func stale(p place, what, fix string) error {
	return &capability.Error{Kind: capability.Conflict, Op: "write", Target: p.shown, Rule: "files.stale", Err: errors.New(what), Fix: fix}
}

// A loaded file is one as it was when it was read; nil where there is none.
type loaded struct {
	data []byte
	info fs.FileInfo
}

func (e *Executor) load(p place) (*loaded, error) {
	f, info, err := e.open(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := readAll(f, e.cfg.MaxFile)
	if err != nil {
		return nil, err
	}
	return &loaded{data: data, info: info}, nil
}

const tempPrefix = ".ken-write-"

// store puts a content in place of what was loaded. A new file is made where
// none is; an existing one is replaced at once, so that no reader sees half of it
// and what else has its inode keeps the old bytes. The caller holds writing.
func (e *Executor) store(p place, was *loaded, data []byte) (writing, error) {
	dir, base, in, err := e.parent(p, was == nil)
	if err != nil {
		return writing{}, err
	}
	defer dir.Close()
	if e.stands(p, in, nil) != common {
		return writing{}, isOwn("write", p)
	}
	done := writing{Path: p.shown, Bytes: len(data), Hash: hashOf(data), Created: was == nil}
	if was == nil {
		return done, create(dir, base, p, data)
	}
	temp := tempPrefix + rand.Text()
	if err := fill(dir, temp, data, was.info); err != nil {
		dir.Remove(temp)
		return writing{}, err
	}
	if now, err := dir.Lstat(base); err != nil || !unchanged(was.info, now) {
		dir.Remove(temp)
		return writing{}, stale(p, "the file changed in the meantime", "read it again, then write")
	}
	if err := dir.Rename(temp, base); err != nil {
		dir.Remove(temp)
		return writing{}, err
	}
	return done, nil
}

func create(dir *os.Root, base string, p place, data []byte) error {
	f, err := dir.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return stale(p, "the file already exists", "read it, and give its hash as expect to replace it")
	}
	if err != nil {
		return err
	}
	if err := finish(f, data); err != nil {
		dir.Remove(base)
		return err
	}
	return nil
}

func fill(dir *os.Root, name string, data []byte, was fs.FileInfo) error {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	keepOwner(f, was)
	if err := f.Chmod(was.Mode().Perm()); err != nil {
		f.Close()
		return err
	}
	return finish(f, data)
}

func finish(f *os.File, data []byte) error {
	_, err := f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
