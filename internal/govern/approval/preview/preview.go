// Package preview shows what a call would change, so that a person can judge it:
// the change of a file as a diff against the file as it is now.
package preview

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"ken/capability"
)

const (
	around   = 3         // unchanged lines shown before and after a change
	mostFile = 256 << 10 // bytes of a file that is compared
	mostWork = 4 << 20   // pairs of lines that are compared
)

// Change returns what a call of Ken's own tools for files would change in the
// workspace: for write_to_file a unified diff, for apply_diff the diff in the call.
// It returns "" if the change cannot be shown: for other capabilities, and for
// files that are too large, binary or outside the workspace. It changes nothing.
func Change(workspace string, call capability.Call) string {
	var in struct{ Path, Content, Diff string }
	if json.Unmarshal(call.Arguments, &in) != nil {
		return ""
	}
	switch call.Target {
	case "tool:write_to_file":
		old, there, ok := read(workspace, in.Path)
		if !ok || !text(in.Content) {
			return ""
		}
		return Diff(in.Path, old, in.Content, there)
	case "tool:apply_diff":
		// As the model wrote it. The executor reads it, and a second reader that
		// disagrees with it would show a change that is not the one that is made.
		return in.Diff
	}
	return ""
}

// read returns the text of a file in the workspace, and whether there is one. ok
// is false for what cannot be compared.
func read(workspace, path string) (content string, there, ok bool) {
	if filepath.IsAbs(path) {
		rel, err := filepath.Rel(workspace, path)
		if err != nil {
			return "", false, false
		}
		path = rel
	}
	root, err := os.OpenRoot(workspace) // a link out of it is not followed
	if err != nil {
		return "", false, false
	}
	defer root.Close()
	info, err := root.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, filepath.IsLocal(path)
	case err != nil || !info.Mode().IsRegular() || info.Size() > mostFile:
		return "", false, false
	}
	f, err := root.Open(path)
	if err != nil {
		return "", false, false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostFile+1))
	if err != nil || len(data) > mostFile || !text(string(data)) {
		return "", false, false
	}
	return string(data), true, true
}

func text(s string) bool {
	return len(s) <= mostFile && utf8.ValidString(s) && !strings.ContainsRune(s, 0)
}

func mark(out *strings.Builder, sign string, lines []string) {
	for _, l := range lines {
		out.WriteString(sign + strings.TrimSuffix(l, "\n") + "\n")
		if !strings.HasSuffix(l, "\n") {
			out.WriteString("\\ No newline at end of file\n")
		}
	}
}

func split(s string) []string {
	var out []string
	for line := range strings.Lines(s) {
		out = append(out, line)
	}
	return out
}

// Diff returns a unified diff of two texts. there is false for a file that is new.
func Diff(path, old, now string, there bool) string {
	from := path
	if !there {
		from = "/dev/null"
	}
	head := fmt.Sprintf("--- %s\n+++ %s\n", from, path)
	if old == now && there {
		return head + "No change\n"
	}
	var out strings.Builder
	out.WriteString(head)
	edits := compare(split(old), split(now))
	for start := 0; start < len(edits); {
		for start < len(edits) && edits[start].sign == " " {
			start++
		}
		if start == len(edits) {
			break
		}
		end, same := start, 0 // end is behind the last change of the hunk
		for i := start; i < len(edits) && same <= 2*around; i++ {
			if same++; edits[i].sign != " " {
				end, same = i+1, 0
			}
		}
		hunk(&out, edits[max(0, start-around):min(len(edits), end+around)])
		start = end
	}
	return out.String()
}

// An edit is a line of either text, or of both, and where it is.
type edit struct {
	sign     string // "-", "+" or " "
	line     string
	old, now int // numbers of the line, from 1
}

func hunk(out *strings.Builder, edits []edit) {
	was, is := 0, 0
	for _, e := range edits {
		if e.sign != "+" {
			was++
		}
		if e.sign != "-" {
			is++
		}
	}
	fmt.Fprintf(out, "@@ -%d,%d +%d,%d @@\n", min(edits[0].old, edits[0].old*was), was, min(edits[0].now, edits[0].now*is), is)
	for _, e := range edits {
		mark(out, e.sign, []string{e.line})
	}
}

// compare returns the lines of both texts as edits, with a longest common
// subsequence unchanged. Texts that differ in too many lines are replaced whole.
func compare(a, b []string) []edit {
	pre := 0
	for pre < len(a) && pre < len(b) && a[pre] == b[pre] {
		pre++
	}
	post := 0
	for post < len(a)-pre && post < len(b)-pre && a[len(a)-1-post] == b[len(b)-1-post] {
		post++
	}
	ma, mb := a[pre:len(a)-post], b[pre:len(b)-post]
	var common [][]int32 // common[i][j]: of ma[i:] and mb[j:]
	if len(ma)*len(mb) <= mostWork {
		common = make([][]int32, len(ma)+1)
		for i := range common {
			common[i] = make([]int32, len(mb)+1)
		}
		for i := len(ma) - 1; i >= 0; i-- {
			for j := len(mb) - 1; j >= 0; j-- {
				if ma[i] == mb[j] {
					common[i][j] = common[i+1][j+1] + 1
				} else {
					common[i][j] = max(common[i+1][j], common[i][j+1])
				}
			}
		}
	}
	var out []edit
	i, j := 0, 0
	add := func(sign string) {
		e := edit{sign: sign, old: i + 1, now: j + 1}
		if sign == "+" {
			e.line = b[j]
		} else {
			e.line = a[i]
		}
		if sign != "+" {
			i++
		}
		if sign != "-" {
			j++
		}
		out = append(out, e)
	}
	for i < len(a) || j < len(b) {
		x, y := i-pre, j-pre
		switch {
		case x < 0 || x >= len(ma) && y >= len(mb):
			add(" ")
		case x < len(ma) && y < len(mb) && common != nil && ma[x] == mb[y]:
			add(" ")
		case y >= len(mb) || x < len(ma) && (common == nil || common[x+1][y] >= common[x][y+1]):
			add("-")
		default:
			add("+")
		}
	}
	return out
}
