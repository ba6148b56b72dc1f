package confine

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A tree is a detached mount on its way into the new root.
type tree struct {
	fd int
	Mount
}

// buildRoot makes a file system that holds what the order names and nothing
// else, and moves into it. The whole of it is read-only but for mounts marked
// Write and /tmp. It returns what could not be had and is not essential.
func buildRoot(o *Order) (missing []string, err error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("make mounts private: %w", err)
	}
	// Every source is taken before anything is mounted over it.
	var trees []tree
	for _, m := range o.Mounts {
		fd, err := openTree(m)
		if errors.Is(err, unix.ENOENT) && m.Maybe {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", m.Source, err)
		}
		trees = append(trees, tree{fd, m})
	}
	if err := enterTmpfs(); err != nil {
		return nil, err
	}
	if err := scratch(o.Scratch); err != nil {
		return nil, fmt.Errorf("make /tmp: %w", err)
	}
	hulls, err := makeHulls(o.Mounts)
	if err != nil {
		return nil, fmt.Errorf("create the parent folders of mounts below /tmp: %w", err)
	}
	for _, f := range o.Files {
		if err := errors.Join(mkdirs(path.Dir(inside(f.Path))), os.WriteFile(inside(f.Path), []byte(f.Text), 0o644)); err != nil {
			return nil, fmt.Errorf("make %s: %w", f.Path, err)
		}
	}
	for _, t := range trees {
		if err := attach(t.fd, t.Target); err != nil {
			return nil, fmt.Errorf("show %s: %w", t.Target, err)
		}
		unix.Close(t.fd)
	}
	if err := coverAll(o.Covers); err != nil {
		return nil, err
	}
	if err := process(); err != nil {
		missing = append(missing, "proc: "+err.Error())
	}
	for _, l := range o.Links {
		name := inside(l.Path)
		if err := mkdirs(path.Dir(name)); err != nil {
			return nil, fmt.Errorf("link %s: %w", l.Path, err)
		}
		if err := unix.Symlink(l.Target, name); err != nil && !errors.Is(err, unix.EEXIST) {
			return nil, fmt.Errorf("link %s: %w", l.Path, err)
		}
	}
	for _, name := range hulls {
		if err := unix.MountSetattr(unix.AT_FDCWD, name, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return nil, fmt.Errorf("make %s read-only: %w", name, err)
		}
	}
	return missing, pivot()
}

// makeHulls turns the directories of /tmp that only lead to mounts below them
// into separate file systems, to be made read-only. Otherwise a tool could
// write there and silently lose the data with /tmp.
func makeHulls(mounts []Mount) (names []string, err error) {
	leads := map[string]bool{}
	for _, m := range mounts {
		if rest, ok := strings.CutPrefix(m.Target, "/tmp/"); ok {
			first, _, deeper := strings.Cut(rest, "/")
			if had, seen := leads[first]; !seen || had {
				leads[first] = deeper
			}
		}
	}
	for first, only := range leads {
		if !only {
			continue
		}
		fd, err := newMount("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, "size", "1m", "mode", "0755")
		if err != nil {
			return nil, err
		}
		err = attach(fd, "/tmp/"+first)
		unix.Close(fd)
		if err != nil {
			return nil, err
		}
		names = append(names, inside("/tmp/"+first))
	}
	return names, nil
}

// openTree clones a mount. A Source that must be a certain inode is opened
// first and looked at, so that what was exchanged meanwhile is refused.
func openTree(m Mount) (int, error) {
	if m.FD != 0 {
		return m.FD, nil // detached and restricted by the runtime
	}
	at, err := unix.Open(m.Source, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return 0, err
	}
	if m.Ino != 0 && (st.Ino != m.Ino || uint64(st.Dev) != m.Dev) {
		return 0, errors.New("replaced since it was opened")
	}
	fd, err := unix.OpenTree(at, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return 0, fmt.Errorf("open_tree: %w", err)
	}
	err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: m.Attributes()})
	if err != nil {
		return 0, fmt.Errorf("mount_setattr: %w", err)
	}
	return fd, nil
}

// Attributes are the mount attributes m is shown with.
func (m Mount) Attributes() uint64 {
	attr := uint64(unix.MOUNT_ATTR_NOSUID)
	if !m.Device {
		attr |= unix.MOUNT_ATTR_NODEV
	}
	if !m.Write && !m.Device {
		attr |= unix.MOUNT_ATTR_RDONLY
	}
	return attr
}

// enterTmpfs makes an empty file system and the working directory its top.
func enterTmpfs() error {
	fd, err := newMount("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, "size", "1m", "mode", "0755")
	if err != nil {
		return fmt.Errorf("make root: %w", err)
	}
	defer unix.Close(fd)
	for _, over := range []string{"/tmp", "/mnt", "/proc"} {
		if err = unix.MoveMount(fd, "", unix.AT_FDCWD, over, unix.MOVE_MOUNT_F_EMPTY_PATH); err == nil {
			return unix.Chdir(over)
		}
	}
	return fmt.Errorf("mount root: %w", err)
}

func newMount(kind string, attr int, options ...string) (int, error) {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("fsopen %s: %w", kind, err)
	}
	defer unix.Close(fs)
	for i := 0; i+1 < len(options); i += 2 {
		if err := unix.FsconfigSetString(fs, options[i], options[i+1]); err != nil {
			return 0, fmt.Errorf("%s %s=%s: %w", kind, options[i], options[i+1], err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return 0, fmt.Errorf("create %s: %w", kind, err)
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attr)
}

// inside turns an absolute path into one below the working directory, which is
// the new root. There are no links in it yet that could lead out.
func inside(abs string) string { return "." + path.Clean("/"+abs) }

func mkdirs(rel string) error {
	for i, c := range rel {
		if c == '/' && i > 1 {
			if err := mkdir(rel[:i]); err != nil {
				return err
			}
		}
	}
	if strings.Trim(rel, "./") == "" {
		return nil
	}
	return mkdir(rel)
}

func mkdir(name string) error {
	if err := unix.Mkdir(name, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

// attach puts a detached mount at a path of the new root.
func attach(fd int, target string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	name := inside(target)
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		if err := mkdirs(name); err != nil {
			return err
		}
	} else {
		if err := mkdirs(path.Dir(name)); err != nil {
			return err
		}
		f, err := unix.Open(name, unix.O_CREAT|unix.O_CLOEXEC|unix.O_RDONLY, 0o644)
		if err != nil && !errors.Is(err, unix.EROFS) && !errors.Is(err, unix.EACCES) {
			return err
		}
		if err == nil {
			unix.Close(f)
		}
	}
	return unix.MoveMount(fd, "", unix.AT_FDCWD, name, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

func scratch(size int64) error {
	fd, err := newMount("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV,
		"size", strconv.FormatInt(size, 10), "mode", "1777", "nr_inodes", "16384")
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return attach(fd, "/tmp")
}

// process mounts the processes of our own namespace.
func process() error {
	fd, err := newMount("proc", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return attach(fd, "/proc")
}

// pivot makes the working directory the root and lets go of the old one.
func pivot() error {
	ro := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, ".", 0, &ro); err != nil {
		return fmt.Errorf("make root read-only: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount the old root: %w", err)
	}
	return unix.Chdir("/")
}
