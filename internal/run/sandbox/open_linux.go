package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// resolver says where names of the network are asked for.
const resolver = "/etc/resolv.conf"

// leaveOpen fills in the order for a tool that has the host's files.
func (l *launch) leaveOpen(s Spec, p Profile) error {
	o := &l.order
	if os.Getuid() == 0 {
		o.Processes = 0 // root is never refused a process; its cgroup counts
	}
	if p != Full {
		begin, err := openDir(s)
		if err != nil {
			return err
		}
		o.DirFD = l.pass(begin)
		return nil
	}
	for _, path := range s.Open.Hide {
		real, err := filepath.EvalSymlinks(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			l.missing = append(l.missing, "hide: "+path+" is not there, and what is made there is seen")
		case errors.Is(err, fs.ErrPermission):
			// Closed to us, and so to the tool.
		case err != nil:
			return fmt.Errorf("hide: %w", err)
		default:
			o.Hide = append(o.Hide, real)
		}
	}
	o.Hide = outermost(o.Hide)
	o.Pin = pins(o.Hide)
	return nil
}

// outermost drops what lies within another, and what is there twice.
func outermost(paths []string) []string {
	slices.Sort(paths)
	var list []string
	for _, p := range paths {
		if !slices.ContainsFunc(list, func(have string) bool { return within(p, have) }) {
			list = append(list, p)
		}
	}
	return list
}

// pins are the directories on the way to what is hidden that could be renamed,
// so that another could be put in their place. Those at the top are not among
// them: the border around one would lie in everybody's way.
func pins(hidden []string) []string {
	var list []string
	for _, path := range hidden {
		for dir := filepath.Dir(path); filepath.Dir(dir) != "/" && dir != "/"; dir = filepath.Dir(dir) {
			if unix.Access(filepath.Dir(dir), unix.W_OK) == nil && !slices.Contains(list, dir) {
				list = append(list, dir)
			}
		}
	}
	slices.SortFunc(list, func(a, b string) int { return strings.Count(a, "/") - strings.Count(b, "/") })
	return list
}
