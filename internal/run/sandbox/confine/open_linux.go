package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// openRoot leaves the host's tree as the tool's root, with what the order hides
// covered, and the processes of our own namespace in /proc. What the host
// mounts later is seen. Root is kept from what lies beneath files: devices
// that hold them, and the kernel's own settings.
//
// The covers hold because the tool has no rights over mounts here, and because
// in a namespace that it makes for itself the kernel locks those it inherits.
func openRoot(o *Order) (missing []string, err error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return nil, fmt.Errorf("unshare the mounts: %w", err)
	}
	for _, dir := range o.Pin {
		if err := cover(dir, dir, 0); err != nil {
			return nil, fmt.Errorf("pin %s: %w", dir, err)
		}
	}
	hide := o.Hide
	if os.Getuid() == 0 {
		hide = append(hide, rawDevices()...)
	}
	if err := hideAll(hide); err != nil {
		return nil, err
	}
	if err := process(); err != nil {
		missing = append(missing, "proc: other processes are seen: "+err.Error())
	}
	if os.Getuid() == 0 {
		err = freeze()
	}
	return missing, err
}

// cover mounts what is at from, with everything below it, over what is at to.
// Links are followed.
func cover(from, to string, attr uint64) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("open_tree %s: %w", from, err)
	}
	defer unix.Close(fd)
	if attr != 0 {
		err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attr})
		if err != nil {
			return fmt.Errorf("mount_setattr %s: %w", from, err)
		}
	}
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, to, unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_SYMLINKS); err != nil {
		return fmt.Errorf("move_mount %s: %w", to, err)
	}
	return nil
}

// blank is where the empty file and the empty directory lie while they are
// mounted elsewhere: our own /proc comes there next.
const blank = "/proc"

// hideAll covers each directory with an empty one and all else with a file
// that no process may open.
func hideAll(paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	fd, err := newMount("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC, "size", "64k", "mode", "0755")
	if err != nil {
		return fmt.Errorf("create the replacement file: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, blank, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount the replacement file: %w", err)
	}
	defer unix.Unmount(blank, unix.MNT_DETACH)
	const file, dir = blank + "/file", blank + "/dir"
	if err := errors.Join(os.WriteFile(file, nil, 0), os.Mkdir(dir, 0o555)); err != nil {
		return err
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone since the runtime looked
		}
		if err != nil {
			return fmt.Errorf("hide: %w", err)
		}
		with := file
		if info.IsDir() {
			with = dir
		}
		if err := cover(with, path, unix.MOUNT_ATTR_RDONLY); err != nil {
			return fmt.Errorf("hide %s: %w", path, err)
		}
	}
	return nil
}

// rawDevices are the devices there are now through which root would reach
// files past their mounts, or memory.
func rawDevices() []string {
	var list []string
	fs.WalkDir(os.DirFS("/dev"), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeDevice == 0 {
			return nil // what is gone, or closed to us, is no matter
		}
		path := "/dev/" + name
		var st unix.Stat_t
		if unix.Lstat(path, &st) != nil {
			return nil
		}
		memory := unix.Major(st.Rdev) == 1 && (unix.Minor(st.Rdev) == 1 || unix.Minor(st.Rdev) == 2 || unix.Minor(st.Rdev) == 4)
		if st.Mode&unix.S_IFMT == unix.S_IFBLK || memory {
			list = append(list, path)
		}
		return nil
	})
	return list
}

// freeze makes the kernel's settings read-only: the kernel lets a process that is
// root change many of them, whatever else it may do.
func freeze() error {
	for _, path := range []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/sys"} {
		if err := cover(path, path, unix.MOUNT_ATTR_RDONLY); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("make read-only: %w", err)
		}
	}
	return nil
}

// fence makes a Landlock domain that leaves files alone: in it a tool can
// neither look into processes outside nor, where the kernel can tell, signal
// them, nor use TCP where there is no network. In namespaces it has nothing to
// add, and would keep a tool from making a sandbox of its own.
func fence(s *spawn, o *Order, abi int, started *Started) error {
	if o.Namespaces {
		return nil
	}
	if abi < 2 {
		started.Missing = append(started.Missing, "landlock: this version always restricts files")
		return nil
	}
	attr := unix.LandlockRulesetAttr{}
	if abi < 6 {
		// A domain must handle something, and moving files between directories
		// is refused unless it is granted.
		attr.Handled_access_fs = unix.LANDLOCK_ACCESS_FS_REFER
	} else {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL
	}
	if abi >= 4 && !o.OpenNetwork && !o.Network {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	r, err := makeRuleset(attr)
	if err != nil {
		return err
	}
	if abi < 6 {
		if err := r.path("/", unix.LANDLOCK_ACCESS_FS_REFER); err != nil {
			return err
		}
	}
	started.LandlockABI = abi
	s.add("landlock", unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0)
	return nil
}

// openFilter refuses what no program of a user needs: the kernel's own
// administration, its keys, and those ways into it that were broken most often
// and that every program does without. All else is as it was, a tool's own
// sandbox too. Others' processes are refused where nothing else keeps a tool
// from them.
func openFilter(network, open, contained bool) filter {
	var f filter
	f.begin()
	f.modes(unix.S_ISUID)
	f.onAny(retEPERM, adminCalls, archAdminCalls)
	if !contained {
		f.onAny(retEPERM, peekCalls)
	}
	f.on(unix.SYS_IOCTL, refuseValues(1, []uint32{unix.TIOCSTI, tiocLinux}))
	f.sockets(network, open, false)
	f.op(bpfReturn, retAllow, 0, 0)
	return f
}
