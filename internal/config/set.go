package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/wholefile"
	"ken/internal/yamldoc"
	"ken/internal/yamledit"
)

// Set writes one key of a configuration file, as `ken config set` does. The
// value is YAML: true, 900, [a, b]; a word or a text is taken as it is typed
// unless it is in quotes. A single pin is set by the key "catalog.pins.ID",
// a single override by "catalog.overrides.ID", a part of a database or server by
// "databases.NAME.KEY" or "mcp.servers.NAME.KEY".
// Comments, order and all other keys stay as they are; a
// file of JSON stays JSON; a file that is not there is made.
//
// The result is read strictly, as the user's own file, before it replaces
// anything; the old content is kept beside it as FILE.bak. The file is
// replaced in one step, so that a reader sees the old or the new content whole.
// Sets of one file wait for each other, between processes too. If something
// else writes the file meanwhile Set fails with capability.Conflict and leaves
// theirs; only a writer in the very moment between the last look and the
// rename goes unnoticed.
func Set(file, key, value string) error {
	return edit("set", file, key, func(before []byte) ([]byte, error) { return changed(file, before, key, value) })
}

// Check returns the error that [Set] would return for a value, without writing
// anything.
func Check(file, key, value string) error {
	before, _, err := readFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if err = onlyFile(file); err == nil && isJSON(file) {
			before = []byte("{}\n")
		}
	}
	if err != nil {
		return fmt.Errorf("check %s in %s: %w", plain(key), file, err)
	}
	_, err = changed(file, before, key, value)
	return err
}

// Unset removes one key from a configuration file, so that its default applies. It
// reports whether the file had the key. Otherwise it is like [Set].
func Unset(file, key string) (had bool, err error) {
	path, err := pathOf("unset", key)
	if err != nil {
		return false, err
	}
	err = edit("unset", file, key, func(before []byte) ([]byte, error) {
		root, err := parse(file, before)
		if err != nil {
			r := reading{file: file, dir: filepath.Dir(file)}
			r.decode(before)
			return nil, &Error{r.problems}
		}
		if had = yamledit.Has(root, path); !had {
			return before, nil
		}
		after, err := yamledit.Unset(before, path, limits())
		if err != nil {
			return nil, &capability.Error{Kind: capability.Invalid, Op: "unset", Target: plain(key), Err: err, Fix: "remove it from " + file + " by hand"}
		}
		r := reading{file: file, dir: filepath.Dir(file)}
		if r.decode(after); len(r.problems) > 0 {
			return nil, &Error{append(r.sorted(), capability.Problem{
				Code: "not-unset", Origin: capability.Origin{Path: file}, Message: plain(key) + " was not unset", Fix: "unset what contains it, or fix the file first",
			})}
		}
		return after, nil
	})
	return had, err
}

// pathOf returns the keys under which a setting stands in a file.
func pathOf(op, key string) ([]string, error) {
	if whole, id, ok := hashKey(key); ok && id != "" {
		return append(strings.Split(whole, "."), id), nil
	}
	if whole, below, ok := namedKey(key); ok {
		return append(strings.Split(whole, "."), below...), nil
	}
	s, err := settingOf(op, key)
	return strings.Split(s.name, "."), err
}

// edit replaces a file with what change makes of it.
func edit(op, file, key string, change func(before []byte) ([]byte, error)) error {
	// A link stays a link: people keep their files elsewhere.
	target, err := filepath.EvalSymlinks(file)
	if errors.Is(err, fs.ErrNotExist) {
		if _, lerr := os.Lstat(file); lerr == nil {
			err = errors.New("broken link; remove it, or put a file there")
		} else {
			target, err = file, os.MkdirAll(filepath.Dir(file), 0o700)
		}
	}
	if err != nil {
		return fmt.Errorf("%s %s in %s: %w", op, plain(key), file, err)
	}
	unlock, err := lockFolder(filepath.Dir(target))
	if err != nil {
		return fmt.Errorf("%s %s in %s: %w", op, plain(key), file, err)
	}
	defer unlock()
	before, info, err := readFile(target)
	if errors.Is(err, fs.ErrNotExist) {
		if err = onlyFile(target); err == nil && isJSON(target) {
			before = []byte("{}\n")
		}
	}
	if err != nil {
		return fmt.Errorf("%s %s in %s: %w", op, plain(key), file, err)
	}
	after, err := change(before)
	if err != nil {
		return err
	}
	if info != nil && bytes.Equal(before, after) {
		return nil
	}
	if err := replace(target, before, info, after); err != nil {
		return fmt.Errorf("%s %s in %s: %w", op, plain(key), file, err)
	}
	return nil
}

// onlyFile refuses to make a second configuration file in a directory.
func onlyFile(target string) error {
	other := JSONName
	switch filepath.Base(target) {
	case YAMLName:
	case JSONName:
		other = YAMLName
	default:
		return nil
	}
	if _, err := os.Lstat(filepath.Join(filepath.Dir(target), other)); err == nil {
		return fmt.Errorf("%s is there already, and only one of the two is read; set it there", other)
	}
	return nil
}

// changed returns the text of a file with one key set.
func changed(file string, data []byte, key, value string) ([]byte, error) {
	path, v, err := asked(key, value)
	if err != nil {
		return nil, err
	}
	r := reading{file: file, dir: filepath.Dir(file)}
	root, err := parse(file, data)
	if err != nil {
		r.decode(data)
		return nil, &Error{r.problems}
	}
	// What else is wrong is said with the lines of the file as it is.
	rest := path
	if whole, _, ok := namedKey(key); ok { // an entry may lack the key that is set
		rest = path[:strings.Count(whole, ".")+2]
	}
	if r.layer(yamledit.Without(root, rest)); len(r.problems) > 0 {
		return nil, &Error{append(r.sorted(), capability.Problem{
			Code: "not-set", Origin: capability.Origin{Path: file},
			Message: plain(key) + " was not set", Fix: "fix the file first",
		})}
	}
	after, err := yamledit.Set(data, path, v, limits())
	if err == nil {
		if r.decode(after); len(r.problems) > 0 {
			p := r.problems[0]
			if _, _, ok := namedKey(key); ok {
				return nil, &capability.Error{Kind: capability.Invalid, Op: "set", Target: plain(key), Err: errors.New(p.Message), Fix: p.Fix}
			}
			err = errors.New(p.Message)
		}
	}
	if err != nil {
		return nil, &capability.Error{
			Kind: capability.Invalid, Op: "set", Target: plain(key), Err: err,
			Fix: fmt.Sprintf("edit %s by hand: %s: %s", file, plain(key), plain(Shown(key, yamledit.Flow(v.Any)))),
		}
	}
	return after, nil
}

// asked reads what is to be set, and judges it on its own: a fault in it has
// no line in any file.
func asked(key, value string) (path []string, v yamldoc.Value, err error) {
	if _, _, ok := namedKey(key); ok { // judged with the rest of its entry
		if path, err = pathOf("set", key); err != nil {
			return nil, v, err
		}
		if v, err = yamldoc.ParseValue([]byte(value), limits()); err != nil {
			v, err = yamldoc.Value{Any: value}, nil
		}
		return path, v, nil
	}
	name := key
	if whole, id, ok := hashKey(key); ok && id != "" {
		name = whole
		path = append(strings.Split(whole, "."), id)
	}
	s, err := settingOf("set", name)
	if err != nil {
		return nil, v, err
	}
	v, err = yamldoc.ParseValue([]byte(value), limits())
	if _, isText := v.Any.(string); (s.text || path != nil) && (!isText || !strings.ContainsAny(value[:1], `"'`)) {
		// Words, durations and names are meant as typed: 007, null, a #b.
		v, err = yamldoc.Value{Any: value}, nil
	}
	if err != nil {
		return nil, v, &capability.Error{Kind: capability.Invalid, Op: "set", Target: plain(key), Err: err, Fix: "quote the value"}
	}
	if strings.HasPrefix(name, "policy.") {
		// In a rule 1.10 is a word, and not 1.1.
		v = yamledit.MapNumbers(v, func(text string, n any) any {
			if text == yamledit.Flow(n) {
				return n
			}
			return text
		})
	}
	whole := v
	if path == nil {
		path = strings.Split(name, ".")
	} else {
		whole.Any = &yamldoc.Map{Fields: []yamldoc.Field{{Key: path[2], Value: v}}}
	}
	root, err := filepath.Abs("/") // any folder will do for ~: the value is judged, and kept as it is
	if err != nil {
		return nil, v, err
	}
	r := reading{home: root}
	var c Config
	s.read(&r, spot{key: name}, whole, &c)
	if len(r.problems) > 0 {
		p := r.problems[0]
		return nil, v, &capability.Error{Kind: capability.Invalid, Op: "set", Target: plain(key), Err: errors.New(p.Message), Fix: p.Fix}
	}
	return path, v, nil
}

const lockWait = 5 * time.Second

// lockFolder keeps other edits in a directory waiting, in this process and in
// others, and leaves no file behind. Where there are no locks it does nothing:
// what else guards an edit remains.
func lockFolder(dir string) (unlock func(), err error) {
	unlock, err = wholefile.LockFolder(dir, lockWait)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return func() {}, nil
	case errors.Is(err, wholefile.ErrHeld):
		return nil, &capability.Error{
			Kind: capability.Conflict, Op: "lock", Target: dir,
			Err: errors.New("another edit is under way"), Fix: "try again when it has ended",
		}
	}
	return unlock, err
}

// replace exchanges the content of a file, if it is still what it was. A nil
// info means that there was no file.
func replace(target string, before []byte, info fs.FileInfo, after []byte) error {
	mode := fs.FileMode(0o600)
	if info != nil {
		if mode = info.Mode().Perm(); mode&0o222 == 0 {
			return errors.New("the file is read-only; make it writable")
		}
	}
	temp, err := wholefile.Stage(target, after, mode)
	if err != nil {
		return err
	}
	defer os.Remove(temp) // gone already when all went well
	if info != nil {
		backup, err := wholefile.Stage(target+".bak", before, mode)
		if err != nil {
			return err
		}
		if err := os.Rename(backup, target+".bak"); err != nil {
			os.Remove(backup)
			return err
		}
	}
	now, _, err := readFile(target)
	if info == nil && !errors.Is(err, fs.ErrNotExist) || info != nil && (err != nil || !bytes.Equal(now, before)) {
		return &capability.Error{
			Kind: capability.Conflict, Op: "replace", Target: target,
			Err: errors.New("changed by another process meanwhile"), Fix: "try again",
		}
	}
	if err := os.Rename(temp, target); err != nil {
		return err
	}
	return wholefile.SyncFolder(filepath.Dir(target))
}
