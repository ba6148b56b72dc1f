package confine

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// coverAll covers files and directories in the mounts of the new root, which is
// the working directory. The tool cannot rename or remove a mount, and a mount
// moves with the directory that contains it.
func coverAll(covers []Cover) (err error) {
	file, dir := -1, -1
	defer func() {
		if file >= 0 {
			err = errors.Join(err, unix.Unmount(blankPlace, unix.MNT_DETACH), unix.Rmdir(blankPlace))
		}
	}()
	for _, c := range covers {
		if c.As == Masked && file < 0 {
			if file, dir, err = blanks(); err != nil {
				return fmt.Errorf("create the replacement file: %w", err)
			}
			defer unix.Close(file)
			defer unix.Close(dir)
		}
		if err := coverOne(c, file, dir); err != nil {
			return fmt.Errorf("cover %s: %w", c.Path, err)
		}
	}
	return nil
}

// blankPlace is where the blanks are while they are mounted elsewhere.
const blankPlace = "./.blank"

// blanks opens an empty file and an empty directory whose mode lets no one open
// them.
func blanks() (file, dir int, err error) {
	fs, err := newMount("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC, "size", "64k", "mode", "0755")
	if err != nil {
		return -1, -1, err
	}
	err = attach(fs, blankPlace)
	unix.Close(fs)
	if err != nil {
		return -1, -1, err
	}
	const aFile, aDir = blankPlace + "/file", blankPlace + "/dir"
	if err := errors.Join(os.WriteFile(aFile, nil, 0), os.Mkdir(aDir, 0)); err != nil {
		return -1, -1, err
	}
	if file, err = unix.Open(aFile, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
		return -1, -1, err
	}
	if dir, err = unix.Open(aDir, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
		unix.Close(file)
		return -1, -1, err
	}
	return file, dir, nil
}

// coverOne opens exactly this file or directory, without following links, and
// mounts it, or a blank, over itself.
func coverOne(c Cover, file, dir int) error {
	at, err := unix.Openat2(unix.AT_FDCWD, inside(c.Path), &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return err
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return err
	}
	if st.Ino != c.Ino || uint64(st.Dev) != c.Dev {
		return errors.New("replaced since it was checked")
	}
	from, attr := at, uint64(0)
	switch {
	case c.As == Frozen:
		attr = unix.MOUNT_ATTR_RDONLY
	case c.As == Masked && st.Mode&unix.S_IFMT == unix.S_IFDIR:
		from, attr = dir, unix.MOUNT_ATTR_RDONLY
	case c.As == Masked:
		from, attr = file, unix.MOUNT_ATTR_RDONLY
	}
	fd, err := unix.OpenTree(from, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("open_tree: %w", err)
	}
	defer unix.Close(fd)
	if attr != 0 {
		err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attr})
		if err != nil {
			return fmt.Errorf("mount_setattr: %w", err)
		}
	}
	if err := unix.MoveMount(fd, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("move_mount: %w", err)
	}
	return nil
}
