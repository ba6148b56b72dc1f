package wholefile

import (
	"io/fs"
	"syscall"
	"time"
)

// looksNow is Looks(StampOf(s.Path)) without the memory that an [os.FileInfo]
// takes.
func (s Stamp) looksNow() bool {
	var now syscall.Stat_t
	err := syscall.Stat(s.Path, &now)
	for err == syscall.EINTR {
		err = syscall.Stat(s.Path, &now)
	}
	if err != nil || s.Info == nil {
		return err != nil && s.Info == nil
	}
	was, ok := s.Info.Sys().(*syscall.Stat_t)
	if !ok {
		return s.Looks(StampOf(s.Path))
	}
	return was.Dev == now.Dev && was.Ino == now.Ino && was.Size == now.Size && was.Mtim == now.Mtim && was.Ctim == now.Ctim
}

func changed(info fs.FileInfo) time.Time {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.ModTime()
	}
	return time.Unix(st.Ctim.Unix())
}
