// Record runs commands of Ken in a home of their own and draws what they print, as
// pictures of a terminal:
//
//	go run ./scripts/record bin/ken docs/pictures
//
// So the pictures in the documentation are what the program really prints.
package main

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// recordings are the pictures, by name, and the command of each.
var recordings = []struct {
	name    string
	command []string
	most    int // lines
}{
	{"terminal-demo", []string{"demo", "--yes"}, 42},
	{"terminal-discover", []string{"discover", "how much disk space is left"}, 20},
	{"terminal-why", []string{"catalog", "why", "tool:web-search"}, 20},
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: record PROGRAM FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func run(program, folder string) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	home, err := os.MkdirTemp("", "record")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	for _, r := range recordings {
		cmd := exec.Command(program, r.command...)
		cmd.Dir, cmd.Env = home, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "COLUMNS=100"}
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("ken %s: %w\n%s", strings.Join(r.command, " "), err, &stderr)
		}
		text := strings.ReplaceAll(string(out), home, "~")
		picture := draw(commandLine(r.command), lines(text, r.most))
		if err := os.WriteFile(filepath.Join(folder, r.name+".svg"), picture, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func commandLine(words []string) string {
	out := "$ ken"
	for _, w := range words {
		if strings.Contains(w, " ") {
			w = `"` + w + `"`
		}
		out += " " + w
	}
	return out
}

// width is how many characters a line of a picture has.
const width = 100

// lines breaks a text into lines of a terminal, and says how many were left out.
func lines(text string, most int) []string {
	var out []string
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		line = strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "  ")
		for utf8.RuneCountInString(line) > width {
			at := len(string([]rune(line)[:width]))
			if space := strings.LastIndexByte(line[:at], ' '); space > at/2 {
				at = space
			}
			out = append(out, line[:at])
			line = "  " + strings.TrimLeft(line[at:], " ")
		}
		out = append(out, line)
	}
	if left := len(out) - most; left > 0 {
		out = append(out[:most], fmt.Sprintf("… and %d more", left))
	}
	return out
}

// draw returns a picture of a terminal as SVG. Its colours suit light and dark pages.
func draw(command string, list []string) []byte {
	const step, left, top, wide = 18, 16, 32, 8
	var b bytes.Buffer
	height := top + step*(len(list)+1) + 8
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img">`+"\n", 2*left+wide*width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(command))
	b.WriteString(`<rect width="100%" height="100%" rx="8" fill="#16181d"/>` + "\n")
	b.WriteString(`<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13" xml:space="preserve">` + "\n")
	write := func(row int, colour, text string) {
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", left, top+step*row, colour, html.EscapeString(text))
	}
	write(0, "#8ec07c", command)
	for i, line := range list {
		write(i+1, colourOf(line), line)
	}
	b.WriteString("</g>\n</svg>\n")
	return b.Bytes()
}

// colourOf gives a line the colour of what it says.
func colourOf(line string) string {
	switch word := strings.TrimSpace(line); {
	case strings.HasPrefix(line, "> "):
		return "#fabd2f"
	case strings.HasPrefix(word, "✓"), strings.HasPrefix(word, "+") && !strings.HasPrefix(word, "+++"):
		return "#8ec07c"
	case strings.HasPrefix(word, "✗"), strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "---") && !strings.HasPrefix(word, "- "):
		return "#fb6f5f"
	case strings.HasPrefix(word, "turn "), strings.HasPrefix(word, "…"):
		return "#8a93a2"
	}
	return "#dfe3ea"
}
