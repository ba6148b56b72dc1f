package executor

import "syscall"

// keepsTime reports whether a folder is on a file system of this machine that notes
// the time when a name is added to a folder or taken from it.
func keepsTime(dir string) bool {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil {
		return false
	}
	switch uint32(st.Type) {
	case 0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0xf2f52010, 0x2fc12fc1: // ext4, xfs, btrfs, tmpfs, overlay, f2fs, zfs
		return true
	}
	return false
}
