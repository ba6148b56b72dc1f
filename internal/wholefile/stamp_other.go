//go:build !linux

package wholefile

import (
	"io/fs"
	"time"
)

func (s Stamp) looksNow() bool { return s.Looks(StampOf(s.Path)) }

func changed(info fs.FileInfo) time.Time { return info.ModTime() }
