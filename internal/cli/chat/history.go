package chat

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ken/internal/wholefile"
)

const mostHistory = 1000 // entries that are kept

// A history holds what was typed, oldest first. In its file each entry is one
// line, a JSON string. Several chats may append to one file.
type history struct {
	file    string
	entries []string
	at      int    // the entry that is shown; len(entries): the draft
	draft   string // what was typed before going back
}

// openHistory reads a file, which need not exist. Without one nothing is kept.
func openHistory(file string) (*history, error) {
	h := &history{file: file}
	if file == "" {
		return h, nil
	}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, fmt.Errorf("read the input history: %w", err)
	}
	defer f.Close()
	lines := 0
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, mostPaste*2)
	for scan.Scan() {
		lines++
		var entry string
		if json.Unmarshal(scan.Bytes(), &entry) == nil && entry != "" {
			h.entries = append(h.entries, entry)
		}
	}
	h.entries = h.entries[max(len(h.entries)-mostHistory, 0):]
	h.at = len(h.entries)
	if err := scan.Err(); err != nil {
		return h, fmt.Errorf("read the input history: %w", err)
	}
	if lines > 2*mostHistory {
		return h, h.rewrite()
	}
	return h, nil
}

// rewrite leaves in the file what is kept.
func (h *history) rewrite() error {
	var kept bytes.Buffer
	enc := json.NewEncoder(&kept)
	for _, entry := range h.entries {
		if err := enc.Encode(entry); err != nil {
			return fmt.Errorf("shorten the input history: %w", err)
		}
	}
	if err := wholefile.Write(h.file, kept.Bytes(), 0o600); err != nil {
		return fmt.Errorf("shorten the input history: %w", err)
	}
	return nil
}

// add keeps an entry. One that begins with a blank is not kept, nor is one
// twice in a row.
func (h *history) add(text string) error {
	h.draft = ""
	defer func() { h.at = len(h.entries) }()
	if strings.TrimSpace(text) == "" || text[0] == ' ' || len(h.entries) > 0 && h.entries[len(h.entries)-1] == text {
		return nil
	}
	h.entries = append(h.entries, text)
	if h.file == "" {
		return nil
	}
	line, err := json.Marshal(text)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(h.file), 0o700)
	}
	if err != nil {
		return fmt.Errorf("save the input history: %w", err)
	}
	f, err := os.OpenFile(h.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("save the input history: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("save the input history: %w", err)
	}
	return nil
}

// move goes back or forth from the current text and returns the text to show; ok
// is false at either end.
func (h *history) move(by int, now string) (text string, ok bool) {
	next := h.at + by
	if next < 0 || next > len(h.entries) {
		return "", false
	}
	if h.at == len(h.entries) {
		h.draft = now
	}
	if h.at = next; next == len(h.entries) {
		return h.draft, true
	}
	return h.entries[next], true
}

// search returns the newest entry before at that holds a text, or -1.
func (h *history) search(text string, at int) int {
	for i := min(at, len(h.entries)) - 1; i >= 0 && text != ""; i-- {
		if strings.Contains(strings.ToLower(h.entries[i]), strings.ToLower(text)) {
			return i
		}
	}
	return -1
}
