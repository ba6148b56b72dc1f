package main

import (
	"fmt"
	"os"
	"strings"
)

// keep replaces what stands between <!-- SECTION:begin --> and
// <!-- SECTION:end --> in the file. Nothing else of the file changes.
func keep(file, section, text string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	changed, err := replaceSection(string(old), section, text)
	if err != nil {
		return fmt.Errorf("keep %s in %s: %w", section, file, err)
	}
	return os.WriteFile(file, []byte(changed), 0o644)
}

func replaceSection(doc, section, text string) (string, error) {
	begin, end := "<!-- "+section+":begin -->", "<!-- "+section+":end -->"
	head, rest, ok := strings.Cut(doc, begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", fmt.Errorf("write the lines %q and %q where it belongs", begin, end)
	}
	return head + begin + "\n" + strings.TrimSpace(text) + "\n" + end + tail, nil
}
