//go:build !linux

package wholefile

func (s Stamp) looksNow() bool { return s.Looks(StampOf(s.Path)) }
