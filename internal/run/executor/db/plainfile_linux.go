package db

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// A fileID names a file, whatever path leads to it.
type fileID struct{ device, inode uint64 }

// plainFile returns the path of a regular file to which no symbolic link leads,
// and which file that is. Each folder is entered from the one before it, so
// nothing that is renamed meanwhile leads elsewhere.
func plainFile(path string) (string, fileID, error) {
	path, err := withoutSystemLink(path)
	if err != nil {
		return "", fileID{}, err
	}
	names := strings.Split(strings.Trim(path, "/"), "/")
	at, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", fileID{}, errUnseen
	}
	defer func() { unix.Close(at) }()
	for i, name := range names {
		var st unix.Stat_t
		switch err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); {
		case errors.Is(err, unix.ENOENT):
			return "", fileID{}, errNotThere
		case err != nil:
			return "", fileID{}, errUnseen
		}
		switch kind := st.Mode & unix.S_IFMT; {
		case kind == unix.S_IFLNK:
			return "", fileID{}, errLink
		case i == len(names)-1 && kind == unix.S_IFREG:
			return path, fileID{st.Dev, st.Ino}, nil
		case i == len(names)-1 || kind != unix.S_IFDIR:
			return "", fileID{}, errNotPlain
		}
		next, err := unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return "", fileID{}, errUnseen
		}
		unix.Close(at)
		at = next
	}
	return "", fileID{}, errNotPlain
}

// is reports whether the open database is a certain file.
func (f *sqliteFile) is(want fileID) bool {
	main, err := libc.CString("main")
	if err != nil {
		return false
	}
	defer libc.Xfree(f.tls, main)
	at, err := libc.CString("12345678") // room for a pointer
	if err != nil {
		return false
	}
	defer libc.Xfree(f.tls, at)
	if lib.Xsqlite3_file_control(f.tls, f.db, main, lib.SQLITE_FCNTL_FILE_POINTER, at) != lib.SQLITE_OK {
		return false
	}
	file := libc.AtomicLoadPUintptr(at)
	if file == 0 {
		return false
	}
	var st unix.Stat_t
	err = unix.Fstat(int(libc.AtomicLoadPInt32(file+unsafe.Offsetof(lib.TunixFile{}.Fh))), &st)
	return err == nil && fileID{st.Dev, st.Ino} == want
}

// withoutSystemLink resolves the first name of a path: some systems have links
// in their root folder, such as /home.
func withoutSystemLink(path string) (string, error) {
	path = filepath.Clean(path)
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if info, err := os.Lstat("/" + first); err != nil || info.Mode()&os.ModeSymlink == 0 {
		return path, nil
	}
	real, err := filepath.EvalSymlinks("/" + first)
	if err != nil {
		return "", errUnseen
	}
	return filepath.Join(real, rest), nil
}
