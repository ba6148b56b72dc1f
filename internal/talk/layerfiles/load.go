// Package layerfiles reads the layers of a system prompt that lie in folders as
// files. Package prompt puts layers together, and is pure.
package layerfiles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"ken/internal/talk/prompt"
	"ken/internal/untrusted"
)

// A Notice is something that was wrong with a file and kept nothing else from
// being loaded.
type Notice struct {
	File string `json:"file"`
	Text string `json:"text"` // what is wrong, and what became of it
}

// What is read of one file. What is larger is not read at all: half an
// instruction may say the opposite.
const (
	mostText = 256 << 10
	mostJSON = 64 << 10
)

// Load reads the layers that lie in folders as files:
//
//	context/system_prompt.md             base; without one [prompt.BaseText]
//	AGENTS.md                            agents
//	SOUL.md or context/soul.json         soul
//	context/user_profile.json            profile
//
// Folders are given from the general to the particular: of a layer the last
// folder that has one counts, but the AGENTS.md of all of them are read, in
// order. JSON is written out in one form, whatever the order of its keys.
// Characters that cannot be seen are shown.
//
// Of a folder that came from elsewhere only AGENTS.md counts, which is written
// for every agent that works there; that it has others is noted.
//
// No path leaves its folder, by a link or otherwise. A file that is missing is
// none; with any other the layer is loaded without it, and a notice says why.
// The base is always there.
func Load(on prompt.On, folders ...Folder) ([]prompt.Layer, []Notice) {
	l := loader{}
	base := prompt.Layer{Name: prompt.Base, Text: prompt.BaseText(on), Must: true}
	var agents []string
	var soul, profile prompt.Layer
	for _, f := range folders {
		dir := f.Dir
		root, err := os.OpenRoot(dir)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				l.note(dir, "the folder cannot be read: %v", err)
			}
			continue
		}
		l.dir, l.root = dir, root
		if text := l.text(prompt.AgentsFile); text != "" && !f.NoAgents {
			agents = append(agents, text)
		}
		if f.Foreign {
			l.unread()
			root.Close()
			continue
		}
		if text := l.text("context/system_prompt.md"); text != "" {
			base.Text = text
		}
		if text := l.text("SOUL.md"); text != "" {
			soul = prompt.Layer{Name: prompt.Soul, Text: "# Soul\n\n" + text}
			if l.there("context/soul.json") {
				l.note("context/soul.json", "it is not read: SOUL.md is there and counts")
			}
		} else if text := l.json("context/soul.json"); text != "" {
			soul = prompt.Layer{Name: prompt.Soul, Text: "# Soul\n\n" + text}
		}
		if text := l.json("context/user_profile.json"); text != "" {
			profile = prompt.Layer{Name: prompt.Profile, Text: "# User profile\n\n" + text}
		}
		root.Close()
	}
	layers := []prompt.Layer{base}
	if len(agents) > 0 {
		layers = append(layers, prompt.Layer{Name: prompt.Agents, Text: "# Workspace instructions (AGENTS.md)\n\n" + strings.Join(agents, "\n\n")})
	}
	for _, layer := range []prompt.Layer{soul, profile} {
		if layer.Text != "" {
			layers = append(layers, layer)
		}
	}
	return layers, l.notices
}

// A Folder holds layers as files. Foreign says that it came from elsewhere, such
// as a project that the user opened.
type Folder struct {
	Dir      string
	Foreign  bool
	NoAgents bool // its AGENTS.md is shown elsewhere
}

// unread notes what a foreign folder has and what is not read of it.
func (l *loader) unread() {
	for _, name := range []string{"context/system_prompt.md", "SOUL.md", "context/soul.json", "context/user_profile.json"} {
		if l.there(name) {
			l.note(name, "it came with the project and is not read (capabilities.allowWorkspaceCards)")
		}
	}
}

// A loader reads the files of one folder after the other.
type loader struct {
	dir     string
	root    *os.Root
	notices []Notice
}

func (l *loader) note(name, format string, args ...any) {
	if name != l.dir && l.root != nil {
		name = filepath.Join(l.dir, filepath.FromSlash(name))
	}
	l.notices = append(l.notices, Notice{File: name, Text: fmt.Sprintf(format, args...)})
}

func (l *loader) there(name string) bool {
	_, err := l.root.Lstat(name)
	return err == nil
}

// text reads a file of text.
func (l *loader) text(name string) string {
	data, ok := l.read(name, mostText)
	if !ok {
		return ""
	}
	raw := strings.TrimPrefix(string(data), "\ufeff")
	shown := untrusted.Terminal(raw)
	if hides(raw, shown) {
		l.note(name, "it has characters that cannot be seen; they are shown as ⟨…⟩")
	}
	if shown = strings.TrimSpace(shown); shown == "" {
		l.note(name, "it is empty")
	}
	return shown
}

// hides reports whether showing a text has revealed something.
func hides(raw, shown string) bool { return strings.Count(shown, "⟨") > strings.Count(raw, "⟨") }

// read reads a regular file within the folder. It never waits for the other end
// of a pipe.
func (l *loader) read(name string, most int64) ([]byte, bool) {
	f, err := l.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		switch {
		case errors.Is(err, fs.ErrNotExist) && !l.there(name):
		case errors.Is(err, fs.ErrNotExist):
			l.note(name, "it is a link to nothing, and is not read")
		default:
			l.note(name, "it is not read: %v", err)
		}
		return nil, false
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		l.note(name, "it is not read: %v", err)
		return nil, false
	case !info.Mode().IsRegular():
		l.note(name, "it is not read: it is no regular file")
		return nil, false
	case info.Size() > most:
		l.note(name, "it is not read: it has %d bytes, the limit is %d; shorten it", info.Size(), most)
		return nil, false
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		l.note(name, "it is not read: %v", err)
		return nil, false
	case int64(len(data)) > most:
		l.note(name, "it is not read: more than %d bytes; shorten it", most)
		return nil, false
	}
	return data, true
}
